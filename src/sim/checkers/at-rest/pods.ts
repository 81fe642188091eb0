// Checks pods at rest: each pod runs or reports a true reason why not, and deleted pods are removed.
import { hasTerminated } from '../../../api/kinds/pod/has-terminated.ts'
import { keyOfObject } from '../../../client/index.ts'
import { isReachableFrom } from '../../../volumes/node-affinity.ts'
import { assetOf, type ObjectOf } from '../../engine/view.ts'
import { DRIVERS, type DriverName } from '../../plan/catalog.ts'
import { claimsOf, isBound, isContradictory, isDeleting, isOwnedBy, type Problem, parseAsset } from '../context.ts'
import { canCreate, copiesOf, driverOf, freeBytes, listReachablePools, requestOf } from '../feasibility.ts'
import { cpusOf, priorityOf } from '../preemptions.ts'
import type { AtRestContext } from './index.ts'

const SCHEDULERS = ['default-scheduler', 'stowage-scheduler']
/** Number of CPUs of every simulated node. */
const CPUS_MAX = 8

export function findPodProblems(pod: ObjectOf<'pod'>, context: AtRestContext): Problem[] {
  const key = keyOfObject(pod)
  const createProblem = (rule: Problem['rule'], text: string): Problem[] => [{ rule, text: `pod ${key} ${text}` }]
  if (isDeleting(pod)) {
    const { finalizers = [] } = pod.metadata
    return createProblem(
      'not deleted',
      `is stuck in deletion on ${pod.spec?.nodeName}, held by ${finalizers.join() || 'no finalizer'}`,
    )
  }
  if (hasTerminated(pod)) return []
  if (!pod.spec?.nodeName) return findWaitingProblems(pod, context, createProblem)
  if (pod.status?.phase === 'Running') return []
  const reasons = listReasons(pod, context)
  if (reasons.length === 0)
    return createProblem('no reason', `is on ${pod.spec.nodeName}, does not run, and reports no reason`)
  return canRun(pod, context)
    ? createProblem('needless wait', `could run on ${pod.spec.nodeName}, but reports "${reasons.at(-1)}"`)
    : []
}

function listReasons(pod: ObjectOf<'pod'>, { events }: AtRestContext): string[] {
  const waitingMessages = (pod.status?.containerStatuses ?? []).flatMap(({ state }) => state?.waiting?.message ?? [])
  return [...events.about(pod.metadata.uid).filter((text) => text.startsWith('Warning')), ...waitingMessages]
}

type CreateProblem = (rule: Problem['rule'], text: string) => Problem[]

function findWaitingProblems(pod: ObjectOf<'pod'>, context: AtRestContext, createProblem: CreateProblem): Problem[] {
  // A pod with another scheduler name waits forever.
  if (!SCHEDULERS.includes(pod.spec?.schedulerName ?? SCHEDULERS[0]!)) return []
  const condition = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')
  if (condition?.status !== 'False' || !condition.message)
    return createProblem('no reason', 'has no node and reports no reason')
  const { nominatedNodeName } = pod.status ?? {}
  if (nominatedNodeName)
    return createProblem(
      'no reason',
      `waits for its nominated node ${nominatedNodeName}, although no pod is leaving it`,
    )
  const node = findNode(pod, context)
  return node ? createProblem('needless wait', `could be placed on ${node}, but reports "${condition.message}"`) : []
}

/** Returns a node on which the pod fits, according to the actual capacity of the drivers. */
function findNode(pod: ObjectOf<'pod'>, context: AtRestContext): string | undefined {
  const claims = claimsOf(pod, context.view)
  if (cpusOf(pod) > CPUS_MAX || context.exemptions.hadGatesOff) return undefined
  if (claims.some(({ claim, isEphemeral }) => !claim || isDeleting(claim) || (isEphemeral && !isOwnedBy(pod, claim))))
    return undefined
  if (claims.some(({ claim }) => isUsedByAnotherPod(claim!, pod, context))) return undefined
  return [...context.view.nodes.values()].find((node) => canHost(node, pod, context))?.metadata.name
}

function canHost(node: ObjectOf<'node'>, pod: ObjectOf<'pod'>, context: AtRestContext): boolean {
  const { system, view } = context
  const { name = '', labels = {} } = node.metadata
  if (node.spec?.unschedulable || node.spec?.taints?.some(({ effect }) => effect !== 'PreferNoSchedule')) return false
  if (Object.entries(pod.spec?.nodeSelector ?? {}).some(([key, value]) => labels[key] !== value)) return false
  // Pods created with a node name may use more than the node has. A pod that may preempt can have the CPUs of lower priorities.
  const isPreemptable = (other: ObjectOf<'pod'>) =>
    priorityOf(other) < priorityOf(pod) && pod.spec?.preemptionPolicy !== 'Never'
  const podsOnNode = [...view.pods.values()].filter(
    (other) => other.spec?.nodeName === name && !hasTerminated(other) && !isPreemptable(other),
  )
  if ([pod, ...podsOnNode].reduce((total, podOnNode) => total + cpusOf(podOnNode), 0) > CPUS_MAX) return false
  const requiredBytes = new Map<DriverName, number>()
  return claimsOf(pod, view).every(({ claim }) => {
    const volume = view.volumes.get(claim?.spec?.volumeName ?? '')
    if (claim?.spec?.volumeName) {
      return isBound(claim) && volume !== undefined && isReachableFrom(volume, { name, labels })
    }
    const storageClass = view.classes.get(claim?.spec?.storageClassName ?? '')
    const driver = driverOf(storageClass)
    if (!claim || !storageClass || !driver || storageClass.volumeBindingMode !== 'WaitForFirstConsumer') return false
    if (!canCreate(claim, storageClass, { system, view }, name)) return false
    // All claims of the pod must fit into one pool together.
    requiredBytes.set(driver, (requiredBytes.get(driver) ?? 0) + requestOf(claim) * copiesOf(storageClass))
    return listReachablePools(system, driver, name).some(
      (pool) => freeBytes(system, driver, pool) >= requiredBytes.get(driver)!,
    )
  })
}

/** Whether another pod uses a ReadWriteOncePod claim. */
function isUsedByAnotherPod(claim: ObjectOf<'claim'>, pod: ObjectOf<'pod'>, { view }: AtRestContext): boolean {
  if (!claim.spec?.accessModes?.includes('ReadWriteOncePod')) return false
  return listPodsUsing(claim, view).some((other) => other !== pod && other.spec?.nodeName)
}

const listPodsUsing = (claim: ObjectOf<'claim'>, view: AtRestContext['view']): ObjectOf<'pod'>[] =>
  [...view.pods.values()].filter(
    (pod) => !hasTerminated(pod) && claimsOf(pod, view).some(({ key }) => key === keyOfObject(claim)),
  )

/** Whether everything the pod needs is available on its node. */
function canRun(pod: ObjectOf<'pod'>, context: AtRestContext): boolean {
  const { view, exemptions } = context
  const { nodeName = '' } = pod.spec ?? {}
  const node = view.nodes.get(nodeName)
  if (!node || exemptions.hadGatesOff) return false
  return claimsOf(pod, view).every(({ claim, isEphemeral, volume: name }) => {
    if (!claim || !isBound(claim) || isDeleting(claim) || (isEphemeral && !isOwnedBy(pod, claim))) return false
    const volume = view.volumes.get(claim.spec?.volumeName ?? '')
    const asset = assetOf(volume)
    // Node agents mount volumes of the simulated drivers only, and no volume that its driver lost.
    if (
      !volume ||
      isDeleting(volume) ||
      isContradictory(volume) ||
      !asset ||
      !DRIVERS.includes(parseAsset(asset).driver) ||
      exemptions.isLost(asset)
    )
      return false
    if (!isReachableFrom(volume, { name: nodeName, labels: node.metadata.labels ?? {} })) return false
    const isDevice =
      pod.spec?.containers.some((container) => container.volumeDevices?.some((device) => device.name === name)) ?? false
    // A claim and a volume that name each other are bound even if they do not match. The volume's mode then applies.
    if (isDevice !== (volume.spec?.volumeMode === 'Block')) return false
    const otherPods = listPodsUsing(claim, view).filter((other) => other !== pod && other.spec?.nodeName)
    const isSinglePod = claim.spec?.accessModes?.includes('ReadWriteOncePod')
    if (isSinglePod ? otherPods.length > 0 : otherPods.some(({ spec }) => spec?.nodeName !== nodeName)) return false
    // A driver may refuse to publish a volume read-only for one pod and writable for another.
    return ![pod, ...otherPods].some(({ spec }) =>
      spec?.volumes?.some(({ persistentVolumeClaim: source }) => source?.readOnly),
    )
  })
}
