// Rule `lost volume`: volumes that exist only on a lost node are treated according to the policy of their class. With `wait`
// nothing is deleted, with `mark-lost` the claim has the condition VolumeLost exactly while its node is lost, and with
// `delete-after` claim and volume are deleted after that time, unless the reclaim policy is Retain. Reads policies and node names
// without the code of the controllers.
import type { Client } from '../../../client/index.ts'
import { assetOf, type ObjectOf, type View } from '../../engine/view.ts'
import { TOPOLOGY_KEY } from '../../plan/catalog.ts'
import { type CheckContext, findDriverVolume, isDeleting, type Problem } from '../context.ts'

const POLICY = 'stowage.dev/lost-volume-policy'
const CONDITION = 'VolumeLost'
const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service'
/** The condition of the node has a resolution of a second. */
const ROUNDING_MS = 1_000
/** How long the deletion may take once the time is up. */
const REACTION_MS = 60_000

type Policy = { readonly do: 'wait' | 'mark' } | { readonly do: 'delete'; readonly afterMs: number }

export interface LostVolumes {
  wrapClient(process: string, client: Client): Client
  problems(): Problem[]
  /** Whether the object of the volume was deleted according to its policy, so that its storage is left on the node. */
  isDropped(asset: string): boolean
}

export function followLostVolumes({ system, view, report }: Omit<CheckContext, 'exemptions'>): LostVolumes {
  const { simulation } = system.cluster
  /** The time at which each lost node was lost. */
  const lostSinceMs = new Map<string, number>()
  const droppedAssets = new Set<string>()

  view.onCommit((changes) => {
    for (const change of changes) if (change.of === 'node') followNode(change.key, change.next)
    for (const { of, old, next } of changes) {
      // A volume whose storage still exists, and whose object a process deleted although its node is lost.
      if (of !== 'volume' || next || !old) continue
      const asset = assetOf(old as ObjectOf<'volume'>)
      if (asset && findDriverVolume(system, asset) && isDue(old as ObjectOf<'volume'>)) droppedAssets.add(asset)
    }
  })

  function followNode(name: string, node: ObjectOf<'node'> | undefined): void {
    const statusOf = (type: string) => node?.status?.conditions?.find((condition) => condition.type === type)?.status
    const isLost =
      statusOf('Lost') === 'True' &&
      statusOf('Ready') === 'Unknown' &&
      node?.spec?.taints?.some(({ key }) => key === OUT_OF_SERVICE)
    if (!isLost) lostSinceMs.delete(name)
    else if (!lostSinceMs.has(name)) lostSinceMs.set(name, simulation.nowMs)
  }

  const lostForMs = (volume: ObjectOf<'volume'>): number | undefined => {
    const sinceMs = lostSinceMs.get(onlyNodeOf(volume) ?? '')
    return sinceMs === undefined ? undefined : simulation.nowMs - sinceMs
  }

  /** Whether claim and volume may be deleted because their node is lost. */
  function isDue(volume: ObjectOf<'volume'>): boolean {
    const policy = policyOf(volume, view)
    const ms = lostForMs(volume)
    return (
      policy.do === 'delete' &&
      volume.spec?.persistentVolumeReclaimPolicy === 'Delete' &&
      ms !== undefined &&
      ms + ROUNDING_MS >= policy.afterMs
    )
  }

  function checkDeletion(process: string, kind: string, namespace: string | undefined, name: string): void {
    const claim = kind === 'PersistentVolumeClaim' ? view.claims.get(`${namespace}/${name}`) : undefined
    // The claim of an ephemeral volume is deleted with its pod.
    if (claim?.metadata.ownerReferences?.length || (claim && isDeleting(claim))) return
    const volume = view.volumes.get(kind === 'PersistentVolume' ? name : (claim?.spec?.volumeName ?? ''))
    if (!volume || lostForMs(volume) === undefined || isDeleting(volume)) return
    const asset = assetOf(volume)
    const isStored = asset !== undefined && findDriverVolume(system, asset) !== undefined
    if (!isStored || isDue(volume)) return
    const object = claim ? `claim ${namespace}/${name}` : `volume ${name}`
    report(
      'lost volume',
      `${process} deletes ${object} of the lost node ${onlyNodeOf(volume)}, although its policy does not allow it now`,
    )
  }

  return {
    isDropped: (asset) => droppedAssets.has(asset),
    wrapClient: (process, client) => ({
      ...client,
      delete(kind, ref, options) {
        if (process.startsWith('control')) checkDeletion(process, kind.kind, ref.namespace, ref.name)
        return client.delete(kind, ref, options)
      },
    }),
    problems() {
      const problems: string[] = []
      for (const [key, claim] of view.claims) {
        if (isDeleting(claim)) continue
        const volume = view.volumes.get(claim.spec?.volumeName ?? '')
        const isMarked = claim.status?.conditions?.some(({ type, status }) => type === CONDITION && status === 'True')
        const lostMs = volume && volume.spec?.claimRef?.uid === claim.metadata.uid ? lostForMs(volume) : undefined
        const policy: Policy = volume ? policyOf(volume, view) : { do: 'wait' }
        const shouldBeMarked = lostMs !== undefined && policy.do !== 'wait'
        if (isMarked && !shouldBeMarked) problems.push(`claim ${key} has the condition ${CONDITION}, but should not`)
        if (!isMarked && shouldBeMarked) problems.push(`claim ${key} should have the condition ${CONDITION}`)
        const isOverdue =
          policy.do === 'delete' && lostMs !== undefined && lostMs > policy.afterMs + REACTION_MS && isDue(volume!)
        if (isOverdue)
          problems.push(`claim ${key} should have been deleted ${policy.afterMs} ms after the loss of its node`)
      }
      return problems.map((text) => ({ rule: 'lost volume', text }))
    },
  }
}

function policyOf({ spec }: ObjectOf<'volume'>, view: View): Policy {
  const text = view.classes.get(spec?.storageClassName ?? '')?.metadata.annotations?.[POLICY] ?? 'wait'
  if (text === 'wait') return { do: 'wait' }
  if (text === 'mark-lost') return { do: 'mark' }
  const minutes = /^delete-after=(\d+)m$/.exec(text)?.[1]
  if (minutes === undefined) throw new Error(`the checker does not know the policy "${text}"`)
  return { do: 'delete', afterMs: Number(minutes) * 60_000 }
}

/** Returns the only node on which the volume exists, or undefined if there is no such node. */
const onlyNodeOf = ({ spec }: ObjectOf<'volume'>): string | undefined => {
  const terms = spec?.nodeAffinity?.required?.nodeSelectorTerms ?? []
  const values = terms.flatMap(({ matchExpressions = [] }) =>
    matchExpressions.flatMap(({ key, values: nodes = [] }) => (key === TOPOLOGY_KEY ? nodes : [])),
  )
  return values.length === 1 ? values[0] : undefined
}
