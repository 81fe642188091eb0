// At rest: every pod runs or says why not, and the reason is true; what was deleted is gone.
import { quantityToBytes } from '../../../api/quantity.ts'
import { keyOfObject } from '../../../client/index.ts'
import { isReachableFrom } from '../../../volumes/node-affinity.ts'
import { DRIVERS, type DriverName } from '../universe.ts'
import { assetOf, type Of } from '../view.ts'
import { claimsOf, hasEnded, isBound, isContradictory, isGoing, isMadeFor, type Problem, partsOf } from './court.ts'
import { driverOf, freeBytes, isMakeable, poolsAt, requestOf } from './feasible.ts'
import type { Quiet } from './quiet.ts'

const SCHEDULERS = ['default-scheduler', 'stowage-scheduler']
/** No node has as many cores free, whatever else runs there. */
const CPUS_MAX = 4

export function podProblems(pod: Of<'pod'>, quiet: Quiet): Problem[] {
  const key = keyOfObject(pod)
  const problem = (rule: Problem['rule'], text: string): Problem[] => [{ rule, text: `pod ${key} ${text}` }]
  if (isGoing(pod)) {
    const { finalizers = [] } = pod.metadata
    return problem(
      'not gone',
      `is stuck in its deletion on ${pod.spec?.nodeName}, held by ${finalizers.join() || 'nobody'}`,
    )
  }
  if (hasEnded(pod)) return []
  if (!pod.spec?.nodeName) return waitingProblems(pod, quiet, problem)
  if (pod.status?.phase === 'Running') return []
  const said = reasonsOf(pod, quiet)
  if (said.length === 0)
    return problem('says not why', `is on ${pod.spec.nodeName}, does not run, and does not say why`)
  return canRun(pod, quiet)
    ? problem('could go on', `could run on ${pod.spec.nodeName}, and says "${said.at(-1)}"`)
    : []
}

function reasonsOf(pod: Of<'pod'>, { told }: Quiet): string[] {
  const waiting = (pod.status?.containerStatuses ?? []).flatMap(({ state }) => state?.waiting?.message ?? [])
  return [...told.about(pod.metadata.uid).filter((text) => text.startsWith('Warning')), ...waiting]
}

type ToProblem = (rule: Problem['rule'], text: string) => Problem[]

function waitingProblems(pod: Of<'pod'>, quiet: Quiet, problem: ToProblem): Problem[] {
  // Nobody here places it, and nobody would say so.
  if (!SCHEDULERS.includes(pod.spec?.schedulerName ?? SCHEDULERS[0]!)) return []
  const condition = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')
  if (condition?.status !== 'False' || !condition.message)
    return problem('says not why', 'has no node, and does not say why')
  const node = nodeFor(pod, quiet)
  return node ? problem('could go on', `could be placed on ${node}, and says "${condition.message}"`) : []
}

/** A node that would do, by what is really free. */
function nodeFor(pod: Of<'pod'>, quiet: Quiet): string | undefined {
  const claims = claimsOf(pod, quiet.view)
  if (cpusOf(pod) > CPUS_MAX || quiet.past.hadGatesOff) return undefined
  if (claims.some(({ claim, isEphemeral }) => !claim || isGoing(claim) || (isEphemeral && !isMadeFor(pod, claim))))
    return undefined
  if (claims.some(({ claim }) => isTaken(claim!, pod, quiet))) return undefined
  return [...quiet.view.nodes.values()].find((node) => isGood(node, pod, quiet))?.metadata.name
}

function isGood(node: Of<'node'>, pod: Of<'pod'>, quiet: Quiet): boolean {
  const { stage, view } = quiet
  const { name = '', labels = {} } = node.metadata
  if (node.spec?.unschedulable || node.spec?.taints?.some(({ effect }) => effect !== 'PreferNoSchedule')) return false
  if (Object.entries(pod.spec?.nodeSelector ?? {}).some(([key, value]) => labels[key] !== value)) return false
  // Who names a node by hand may have put more on it than it has.
  const there = [...view.pods.values()].filter((other) => other.spec?.nodeName === name && !hasEnded(other))
  if ([pod, ...there].reduce((total, one) => total + cpusOf(one), 0) > CPUS_MAX) return false
  const needed = new Map<DriverName, number>()
  return claimsOf(pod, view).every(({ claim }) => {
    const volume = view.volumes.get(claim?.spec?.volumeName ?? '')
    if (claim?.spec?.volumeName) {
      return isBound(claim) && volume !== undefined && isReachableFrom(volume, { name, labels })
    }
    const storageClass = view.classes.get(claim?.spec?.storageClassName ?? '')
    const driver = driverOf(storageClass)
    if (!claim || !storageClass || !driver || storageClass.volumeBindingMode !== 'WaitForFirstConsumer') return false
    if (!isMakeable(claim, storageClass, { stage, view }, name)) return false
    // All of them together, in one pool.
    needed.set(driver, (needed.get(driver) ?? 0) + requestOf(claim))
    return poolsAt(stage, driver, name).some((pool) => freeBytes(stage, driver, pool) >= needed.get(driver)!)
  })
}

/** A claim for a single pod that another has. */
function isTaken(claim: Of<'claim'>, pod: Of<'pod'>, { view }: Quiet): boolean {
  if (!claim.spec?.accessModes?.includes('ReadWriteOncePod')) return false
  return usersOf(claim, view).some((other) => other !== pod && other.spec?.nodeName)
}

const usersOf = (claim: Of<'claim'>, view: Quiet['view']): Of<'pod'>[] =>
  [...view.pods.values()].filter(
    (pod) => !hasEnded(pod) && claimsOf(pod, view).some(({ key }) => key === keyOfObject(claim)),
  )

/** Whether everything it needs is there for it on its node. */
function canRun(pod: Of<'pod'>, quiet: Quiet): boolean {
  const { view, past } = quiet
  const { nodeName = '' } = pod.spec ?? {}
  const node = view.nodes.get(nodeName)
  if (!node || past.hadGatesOff) return false
  return claimsOf(pod, view).every(({ claim, isEphemeral, volume: name }) => {
    if (!claim || !isBound(claim) || isGoing(claim) || (isEphemeral && !isMadeFor(pod, claim))) return false
    const volume = view.volumes.get(claim.spec?.volumeName ?? '')
    const asset = assetOf(volume)
    // Storage that is no driver's is not for these nodes, and what the storage forgot is for none.
    if (
      !volume ||
      isGoing(volume) ||
      isContradictory(volume) ||
      !asset ||
      !DRIVERS.includes(partsOf(asset).driver) ||
      past.isLost(asset)
    )
      return false
    if (!isReachableFrom(volume, { name: nodeName, labels: node.metadata.labels ?? {} })) return false
    const isDevice =
      pod.spec?.containers.some((one) => one.volumeDevices?.some((device) => device.name === name)) ?? false
    // What two people have tied to each other by name is bound whatever it is, and the volume's mode counts.
    if (isDevice !== (volume.spec?.volumeMode === 'Block')) return false
    const others = usersOf(claim, view).filter((other) => other !== pod && other.spec?.nodeName)
    const isSinglePod = claim.spec?.accessModes?.includes('ReadWriteOncePod')
    if (isSinglePod ? others.length > 0 : others.some(({ spec }) => spec?.nodeName !== nodeName)) return false
    // Used for reading by one and for writing by another, a driver may refuse the second.
    return ![pod, ...others].some(({ spec }) => spec?.volumes?.some(({ persistentVolumeClaim: of }) => of?.readOnly))
  })
}

function cpusOf({ spec }: Of<'pod'>): number {
  const amounts = spec?.containers.map(({ resources }) => resources?.requests?.cpu ?? '0') ?? []
  return amounts.reduce((total, text) => total + Number(quantityToBytes(text)), 0)
}
