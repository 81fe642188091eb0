// At rest: volumes are attached where pods need them and nowhere else, drivers have them where attachments say so, and
// what is mounted is what the pods on the node use.
import { keyOfObject } from '../../../client/index.ts'
import { NODES, nodeIdOf, nodeOfId } from '../universe.ts'
import { assetOf, type Of } from '../view.ts'
import {
  assetsIn,
  claimsOf,
  hasEnded,
  isBound,
  isContradictory,
  isGoing,
  isMadeFor,
  type Problem,
  partsOf,
} from './court.ts'
import { attaches, uidOf } from './mounts.ts'
import type { Quiet } from './quiet.ts'

const MANY = ['ReadWriteMany', 'ReadOnlyMany']

export const attachmentProblems = (quiet: Quiet): Problem[] => [
  ...neededProblems(quiet),
  ...driverProblems(quiet),
  ...mountProblems(quiet),
]

const attached = (text: string): Problem => ({ rule: 'attached', text })

function neededProblems({ stage, view, past }: Quiet): Problem[] {
  const needed = new Map<string, Set<string>>()
  for (const pod of view.pods.values()) {
    const { nodeName } = pod.spec ?? {}
    if (!nodeName || hasEnded(pod) || !view.nodes.has(nodeName)) continue
    for (const { claim, isEphemeral } of claimsOf(pod, view)) {
      if (!claim || !isBound(claim) || (isEphemeral && !isMadeFor(pod, claim))) continue
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
    if (!volume) problems.push(attached(`attachment ${key} is of volume ${name}, which is gone`))
    // What is being deleted is attached nowhere any more, whoever waits for it.
    else if (!status?.attached && !isGoing(volume) && !isContradictory(volume) && !(asset && past.isLost(asset))) {
      problems.push(
        attached(`volume ${name} is still being attached to ${spec.nodeName}: ${status?.attachError?.message}`),
      )
    }
  }
  for (const [name, volume] of view.volumes) {
    const asset = assetOf(volume)
    if (!asset || !stage.drivers.has(partsOf(asset).driver) || !attaches(stage, partsOf(asset).driver)) continue
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

function driverProblems({ stage, view }: Quiet): Problem[] {
  return [...assetsIn(stage)].flatMap(({ asset, held }) => {
    const { driver, handle } = partsOf(asset)
    if (!attaches(stage, driver)) return []
    const volumes = view.volumesOf(driver, handle)
    const names = volumes.map(({ metadata }) => metadata.name)
    // Publishing that nobody heard the end of is not gone on with once the volume is going: the finalizer keeps it in mind.
    const mayBePublished = (node: string) =>
      volumes.some(isGoing) &&
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

function mountProblems({ stage, view, past }: Quiet): Problem[] {
  const problems: Problem[] = []
  const pods = new Map([...view.pods.values()].map((pod) => [pod.metadata.uid ?? '', pod]))
  for (const name of NODES) {
    const node = stage.nodes.get(name)
    if (!node) continue
    const mounts = node.mounts()
    const used = new Set<string>()
    for (const { path, volume } of mounts) {
      const uid = uidOf(path)
      const pod = uid === undefined ? undefined : pods.get(uid)
      if (uid !== undefined && (!pod || pod.spec?.nodeName !== name || hasEnded(pod))) {
        problems.push(attached(`${path} is mounted on ${name} for a pod that is not there`))
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
        if (!isThere && !past.isLost(asset)) {
          problems.push(
            attached(`pod ${keyOfObject(pod)} runs on ${name} (${nodeIdOf(name)}), where ${asset} is not mounted`),
          )
        }
      }
    }
  }
  return problems

  /** Only what a container names is mounted. */
  function assetsOf(pod: Of<'pod'>): string[] {
    const named = new Set(
      pod.spec?.containers.flatMap(({ volumeMounts = [], volumeDevices = [] }) =>
        [...volumeMounts, ...volumeDevices].map((one) => one.name),
      ),
    )
    return claimsOf(pod, view).flatMap(({ claim, volume }) => {
      const asset = named.has(volume) ? assetOf(view.volumes.get(claim?.spec?.volumeName ?? '')) : undefined
      return asset && stage.drivers.has(partsOf(asset).driver) ? [asset] : []
    })
  }
}
