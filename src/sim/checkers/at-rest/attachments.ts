// Attachments at rest: volumes are attached to the nodes whose pods need them and to no others, drivers have published them
// there, and the mounts on a node are those of its pods.
import { keyOfObject } from '../../../client/index.ts'
import { assetOf, type ObjectOf } from '../../engine/view.ts'
import { NODES, nodeIdOf, nodeOfId } from '../../plan/catalog.ts'
import {
  assetsIn,
  claimsOf,
  hasEnded,
  isBound,
  isContradictory,
  isDeleting,
  isOwnedBy,
  type Problem,
  partsOf,
} from '../context.ts'
import { attaches, uidOf } from '../mounts.ts'
import type { AtRest } from './index.ts'

const MANY = ['ReadWriteMany', 'ReadOnlyMany']

export const attachmentProblems = (rest: AtRest): Problem[] => [
  ...neededProblems(rest),
  ...driverProblems(rest),
  ...mountProblems(rest),
]

const attached = (text: string): Problem => ({ rule: 'attachments', text })

function neededProblems({ system, view, exemptions }: AtRest): Problem[] {
  const needed = new Map<string, Set<string>>()
  for (const pod of view.pods.values()) {
    const { nodeName } = pod.spec ?? {}
    if (!nodeName || hasEnded(pod) || !view.nodes.has(nodeName)) continue
    for (const { claim, isEphemeral } of claimsOf(pod, view)) {
      if (!claim || !isBound(claim) || (isEphemeral && !isOwnedBy(pod, claim))) continue
      const name = claim.spec?.volumeName ?? ''
      needed.set(name, (needed.get(name) ?? new Set()).add(nodeName))
    }
  }
  const there = new Map<string, string[]>()
  const problems: Problem[] = []
  for (const [key, { spec, status }] of view.attachments) {
    const name = spec.source.persistentVolumeName ?? ''
    there.set(name, [...(there.get(name) ?? []), spec.nodeName])
    const volume = view.volumes.get(name)
    const asset = assetOf(volume)
    if (!volume) problems.push(attached(`attachment ${key} refers to volume ${name}, which does not exist`))
    // A volume being deleted is no longer attached, even if a pod waits for it.
    else if (
      !status?.attached &&
      !isDeleting(volume) &&
      !isContradictory(volume) &&
      !(asset && exemptions.isLost(asset))
    ) {
      problems.push(attached(`volume ${name} is not attached to ${spec.nodeName} yet: ${status?.attachError?.message}`))
    }
  }
  for (const [name, volume] of view.volumes) {
    const asset = assetOf(volume)
    if (!asset || !system.drivers.has(partsOf(asset).driver) || !attaches(system, partsOf(asset).driver)) continue
    const wanted = [...(needed.get(name) ?? [])].sort()
    const nodes = (there.get(name) ?? []).sort()
    const isShared = volume.spec?.accessModes?.some((mode) => MANY.includes(mode)) ?? false
    const isRight =
      isShared || wanted.length === 0
        ? nodes.join() === wanted.join()
        : nodes.length === 1 && wanted.includes(nodes[0]!)
    if (!isRight) problems.push(attached(`volume ${name} is needed on [${wanted}], and attached to [${nodes}]`))
  }
  return problems
}

function driverProblems({ system, view }: AtRest): Problem[] {
  return [...assetsIn(system)].flatMap(({ asset, held }) => {
    const { driver, handle } = partsOf(asset)
    if (!attaches(system, driver)) return []
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
    const said = [...view.attachments.values()]
      .filter(({ spec, status }) => names.includes(spec.source.persistentVolumeName) && status?.attached)
      .map(({ spec }) => spec.nodeName)
      .sort()
    const has = Object.keys(held.attachments)
      .map(nodeOfId)
      .filter((node) => !mayBePublished(node))
      .sort()
    return has.join() === said.join() ? [] : [attached(`${asset} is published on [${has}], attachments say [${said}]`)]
  })
}

function mountProblems({ system, view, exemptions }: AtRest): Problem[] {
  const problems: Problem[] = []
  const pods = new Map([...view.pods.values()].map((pod) => [pod.metadata.uid ?? '', pod]))
  for (const name of NODES) {
    const node = system.nodes.get(name)
    if (!node) continue
    const mounts = node.mounts()
    const used = new Set<string>()
    for (const { path, volume } of mounts) {
      const uid = uidOf(path)
      const pod = uid === undefined ? undefined : pods.get(uid)
      if (uid !== undefined && (!pod || pod.spec?.nodeName !== name || hasEnded(pod))) {
        problems.push(attached(`${path} is mounted on ${name} for a pod that does not run there`))
      }
      if (uid !== undefined && volume) used.add(volume)
    }
    for (const { path, volume } of mounts) {
      if (uidOf(path) === undefined && volume && !used.has(volume)) {
        problems.push(attached(`${volume} is staged on ${name} at ${path}, and no pod there uses it`))
      }
    }
    for (const pod of pods.values()) {
      if (pod.spec?.nodeName !== name || pod.status?.phase !== 'Running') continue
      for (const asset of assetsOf(pod)) {
        const isThere = mounts.some(({ path, volume }) => volume === asset && uidOf(path) === pod.metadata.uid)
        if (!isThere && !exemptions.isLost(asset)) {
          problems.push(
            attached(`pod ${keyOfObject(pod)} runs on ${name} (${nodeIdOf(name)}), where ${asset} is not mounted`),
          )
        }
      }
    }
  }
  return problems

  /** Only volumes that a container mounts. */
  function assetsOf(pod: ObjectOf<'pod'>): string[] {
    const named = new Set(
      pod.spec?.containers.flatMap(({ volumeMounts = [], volumeDevices = [] }) =>
        [...volumeMounts, ...volumeDevices].map((one) => one.name),
      ),
    )
    return claimsOf(pod, view).flatMap(({ claim, volume }) => {
      const asset = named.has(volume) ? assetOf(view.volumes.get(claim?.spec?.volumeName ?? '')) : undefined
      return asset && system.drivers.has(partsOf(asset).driver) ? [asset] : []
    })
  }
}
