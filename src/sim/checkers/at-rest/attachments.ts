// Checks attachments at rest: attachments, the drivers' publications and mounts match the pods that need them.
import { hasTerminated } from '../../../api/kinds/pod/has-terminated.ts'
import { keyOfObject } from '../../../client/index.ts'
import { assetOf, type ObjectOf } from '../../engine/view.ts'
import { NODES, nodeIdOf, nodeOfId } from '../../plan/catalog.ts'
import {
  claimsOf,
  isBound,
  isContradictory,
  isDeleting,
  isOwnedBy,
  listAssets,
  type Problem,
  parseAsset,
} from '../context.ts'
import { parsePodUid, supportsAttachments } from '../mounts.ts'
import type { AtRestContext } from './index.ts'

const MULTI_NODE_MODES = ['ReadWriteMany', 'ReadOnlyMany']

export const findAttachmentProblems = (context: AtRestContext): Problem[] => [
  ...findObjectProblems(context),
  ...findDriverProblems(context),
  ...findMountProblems(context),
]

const toProblem = (text: string): Problem => ({ rule: 'attachments', text })

/** Compares the VolumeAttachments with the pods that need them. */
function findObjectProblems({ system, view, exemptions }: AtRestContext): Problem[] {
  const neededNodes = new Map<string, Set<string>>()
  for (const pod of view.pods.values()) {
    const { nodeName } = pod.spec ?? {}
    if (!nodeName || hasTerminated(pod) || !view.nodes.has(nodeName)) continue
    for (const { claim, isEphemeral } of claimsOf(pod, view)) {
      if (!claim || !isBound(claim) || (isEphemeral && !isOwnedBy(pod, claim))) continue
      const name = claim.spec?.volumeName ?? ''
      neededNodes.set(name, (neededNodes.get(name) ?? new Set()).add(nodeName))
    }
  }
  const attachedNodes = new Map<string, string[]>()
  const problems: Problem[] = []
  for (const [key, { spec, status }] of view.attachments) {
    const name = spec.source.persistentVolumeName ?? ''
    attachedNodes.set(name, [...(attachedNodes.get(name) ?? []), spec.nodeName])
    const volume = view.volumes.get(name)
    const asset = assetOf(volume)
    if (!volume) problems.push(toProblem(`attachment ${key} refers to volume ${name}, which does not exist`))
    // A volume being deleted is no longer attached, even if a pod waits for it.
    else if (
      !status?.attached &&
      !isDeleting(volume) &&
      !isContradictory(volume) &&
      !(asset && exemptions.isLost(asset))
    ) {
      problems.push(
        toProblem(`volume ${name} is not attached to ${spec.nodeName} yet: ${status?.attachError?.message}`),
      )
    }
  }
  for (const [name, volume] of view.volumes) {
    const asset = assetOf(volume)
    if (
      !asset ||
      !system.drivers.has(parseAsset(asset).driver) ||
      !supportsAttachments(system, parseAsset(asset).driver)
    )
      continue
    const expectedNodes = [...(neededNodes.get(name) ?? [])].sort()
    const nodes = (attachedNodes.get(name) ?? []).sort()
    const isShared = volume.spec?.accessModes?.some((mode) => MULTI_NODE_MODES.includes(mode)) ?? false
    const isExpected =
      isShared || expectedNodes.length === 0
        ? nodes.join() === expectedNodes.join()
        : nodes.length === 1 && expectedNodes.includes(nodes[0]!)
    if (!isExpected)
      problems.push(toProblem(`volume ${name} is needed on [${expectedNodes}], but attached to [${nodes}]`))
  }
  return problems
}

function findDriverProblems({ system, view }: AtRestContext): Problem[] {
  return [...listAssets(system)].flatMap(({ asset, driverVolume }) => {
    const { driver, handle } = parseAsset(asset)
    if (!supportsAttachments(system, driver)) return []
    const volumes = view.volumesOf(driver, handle)
    const names = volumes.map(({ metadata }) => metadata.name)
    // An unanswered publish is not retried once the volume is being deleted; the attachment's finalizer records it.
    const mayBePublished = (node: string) =>
      volumes.some(isDeleting) &&
      [...view.attachments.values()].some(
        ({ metadata, spec, status }) =>
          names.includes(spec.source.persistentVolumeName) &&
          spec.nodeName === node &&
          !status?.attached &&
          (metadata.finalizers?.length ?? 0) > 0,
      )
    const reportedNodes = [...view.attachments.values()]
      .filter(({ spec, status }) => names.includes(spec.source.persistentVolumeName) && status?.attached)
      .map(({ spec }) => spec.nodeName)
      .sort()
    const publishedNodes = Object.keys(driverVolume.attachments)
      .map(nodeOfId)
      .filter((node) => !mayBePublished(node))
      .sort()
    return publishedNodes.join() === reportedNodes.join()
      ? []
      : [toProblem(`${asset} is published on [${publishedNodes}], but its attachments report [${reportedNodes}]`)]
  })
}

function findMountProblems({ system, view, exemptions }: AtRestContext): Problem[] {
  const problems: Problem[] = []
  const pods = new Map([...view.pods.values()].map((pod) => [pod.metadata.uid ?? '', pod]))
  for (const name of NODES) {
    const node = system.nodes.get(name)
    if (!node) continue
    const mounts = node.mounts()
    const usedVolumes = new Set<string>()
    for (const { path, volume } of mounts) {
      const uid = parsePodUid(path)
      const pod = uid === undefined ? undefined : pods.get(uid)
      if (uid !== undefined && (!pod || pod.spec?.nodeName !== name || hasTerminated(pod))) {
        problems.push(toProblem(`${path} is mounted on ${name} for a pod that does not run there`))
      }
      if (uid !== undefined && volume) usedVolumes.add(volume)
    }
    for (const { path, volume } of mounts) {
      if (parsePodUid(path) === undefined && volume && !usedVolumes.has(volume)) {
        problems.push(toProblem(`${volume} is staged on ${name} at ${path}, but no pod there uses it`))
      }
    }
    for (const pod of pods.values()) {
      if (pod.spec?.nodeName !== name || pod.status?.phase !== 'Running') continue
      for (const asset of listPodAssets(pod)) {
        const isMounted = mounts.some(({ path, volume }) => volume === asset && parsePodUid(path) === pod.metadata.uid)
        if (!isMounted && !exemptions.isLost(asset)) {
          problems.push(
            toProblem(`pod ${keyOfObject(pod)} runs on ${name} (${nodeIdOf(name)}), where ${asset} is not mounted`),
          )
        }
      }
    }
  }
  return problems

  /** Returns the driver volumes that a container of the pod mounts. */
  function listPodAssets(pod: ObjectOf<'pod'>): string[] {
    const mountedNames = new Set(
      pod.spec?.containers.flatMap(({ volumeMounts = [], volumeDevices = [] }) =>
        [...volumeMounts, ...volumeDevices].map((mount) => mount.name),
      ),
    )
    return claimsOf(pod, view).flatMap(({ claim, volume }) => {
      const asset = mountedNames.has(volume) ? assetOf(view.volumes.get(claim?.spec?.volumeName ?? '')) : undefined
      return asset && system.drivers.has(parseAsset(asset).driver) ? [asset] : []
    })
  }
}
