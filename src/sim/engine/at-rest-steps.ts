// The steps that a plan can make once the system is at rest. The checkers verify the whole state again after each step.
import type { Kind } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import { csiStorageCapacityKind } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { createQuotaSums } from '../checkers/quota-sums.ts'
import { runUntilSettled } from '../environment/run-until-settled.ts'
import { DRIVERS, NAMESPACES } from '../plan/catalog.ts'
import type { AtRestStep } from '../plan/plan.ts'
import type { System } from './system.ts'
import type { Users } from './users.ts'
import type { View } from './view.ts'

export interface AtRestDeps {
  readonly system: System
  readonly view: View
  readonly users: Pick<Users, 'perform'>
  report(rule: string, text: string): void
}

const MINUTE_MS = 60_000
/** Time in which the scheduler would react to a change. */
const REACTION_MS = 5_000
const CLAIMS_MAX = 8
const ATTEMPTS_METRIC = 'scheduler_schedule_attempts_total'

export function createAtRestSteps({
  system,
  view,
  users,
  report,
}: AtRestDeps): Record<AtRestStep, () => Promise<void>> {
  const { cluster } = system
  const { simulation } = cluster

  async function countAttempts(): Promise<number> {
    let total = 0
    for (const { registry } of system.registries) {
      const { values = [] } = (await registry.getSingleMetric(ATTEMPTS_METRIC)?.get()) ?? {}
      for (const { value } of values) total += value
    }
    return total
  }

  /** Makes changes that make no waiting pod schedulable. */
  async function makeUnrelatedChanges(): Promise<void> {
    const client = cluster.directClient()!
    const annotationPatch = {
      type: 'merge',
      body: { metadata: { annotations: { 'sim.example/seen': `${simulation.nowMs}` } } },
    } as const
    const annotate = (kind: unknown, { metadata: { namespace, name = '' } }: NamedObject) =>
      client.patch(kind as Kind, namespace ? { namespace, name } : { name }, annotationPatch)
    await client.create(configMapKind, {
      metadata: { namespace: NAMESPACES[0], name: `note-${Math.floor(simulation.nowMs)}` },
    })
    for (const node of view.nodes.values()) {
      const conditions = (node.status?.conditions ?? []).map((condition) => ({
        ...condition,
        reason: `at${simulation.nowMs}`,
      }))
      const body = { status: { conditions } }
      await client.patch(
        nodeKind,
        { name: node.metadata.name ?? '' },
        { type: 'strategic', body },
        { subresource: 'status' },
      )
    }
    for (const pod of view.pods.values()) await annotate(podKind, pod)
    for (const claim of view.claims.values()) await annotate(persistentVolumeClaimKind, claim)
    for (const volume of view.volumes.values()) await annotate(persistentVolumeKind, volume)
    for (const capacity of view.capacities.values()) await annotate(csiStorageCapacityKind, capacity)
  }

  return {
    async restart() {
      const shouldRestart = (name: string) =>
        !name.startsWith('server') && !DRIVERS.some((driver) => name === `driver ${driver}`)
      for (const [name, instance] of system.processes) {
        if (!shouldRestart(name)) continue
        instance.crash()
        instance.start()
      }
      await simulation.runFor(2 * MINUTE_MS)
    },
    async 'return lost nodes'() {
      for (const node of system.nodes.values()) node.boot()
      await simulation.runFor(2 * MINUTE_MS)
    },
    async 'unrelated changes'() {
      const previousAttempts = await countAttempts()
      await runUntilSettled(simulation, makeUnrelatedChanges(), 'unrelated changes')
      await simulation.runFor(REACTION_MS)
      const newAttempts = (await countAttempts()) - previousAttempts
      if (newAttempts > 0) report('needless attempt', `unrelated changes caused ${newAttempts} scheduling attempts`)
    },
    /** Checks that the server rejects a claim if and only if it exceeds a quota. */
    async 'use free quota'() {
      const [namespace] = NAMESPACES
      for (let index = 0; index < CLAIMS_MAX; index++) {
        const sums = createQuotaSums(namespace, () => {})
        const { entries } = await runUntilSettled(
          simulation,
          cluster.store()!.list({ prefix: '' }),
          'the stored objects',
        )
        const changes = entries.flatMap(({ key, value }) =>
          key.includes(`/${namespace}/`) && !key.startsWith('core/events/')
            ? [{ key, object: JSON.parse(Buffer.from(value).toString()) }]
            : [],
        )
        sums.apply(changes)
        const object = {
          metadata: { namespace, name: `last-${index}` },
          spec: {
            accessModes: ['ReadWriteOnce'],
            storageClassName: 'static',
            resources: { requests: { storage: '1Gi' } },
          },
        }
        const limitRanges = changes.filter(({ key }) => key.startsWith('core/limitranges/'))
        const chargedClaim = addDefaultRequests(
          object,
          limitRanges.map((change) => change.object),
        )
        const hasRoom = [...sums.quotas.values()].every(({ spec }) => sums.admits(spec, chargedClaim))
        const outcome = await runUntilSettled(
          simulation,
          users.perform({ do: 'create', kind: 'claim', object }),
          'a claim',
        )
        // A limit range may also reject the claim, which does not concern quotas.
        if (!outcome.startsWith('refused') && outcome !== (hasRoom ? 'done' : 'over quota')) {
          report(
            'quota',
            `creating claim last-${index} had the outcome "${outcome}", but the quotas have ${hasRoom ? '' : 'no '}room for it`,
          )
        }
        await simulation.runFor(REACTION_MS)
      }
    },
  }
}

interface NamedObject {
  readonly metadata: { readonly namespace?: string; readonly name?: string }
}

interface NewClaim {
  readonly metadata: object
  readonly spec: { readonly resources: { readonly requests: Readonly<Record<string, string>> } }
}

interface StoredLimitRange {
  readonly spec?: { readonly limits?: readonly { readonly defaultRequest?: Readonly<Record<string, string>> }[] }
}

/** Returns the claim with the iops that the namespace's limit ranges add to its requests: quotas count them too. */
function addDefaultRequests(claim: NewClaim, limitRanges: readonly StoredLimitRange[]): NewClaim {
  const items = limitRanges.flatMap(({ spec }) => spec?.limits ?? [])
  const iops = items.find(({ defaultRequest }) => defaultRequest?.iops !== undefined)?.defaultRequest?.iops
  const requests = { ...(iops === undefined ? {} : { iops }), ...claim.spec.resources.requests }
  return { ...claim, spec: { ...claim.spec, resources: { ...claim.spec.resources, requests } } }
}
