// Plants a bug at an interface of the system and shows that a workload reaches it and a checker reports it.
// docs/explanation/simulation.md lists bugs that were planted in the code.
import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import type { KubeObject } from '../../api/kind.ts'
import { OUT_OF_SERVICE_TAINT } from '../../api/kinds/node/fencing.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { NodeUnstageVolumeResponseSchema } from '../../csi/gen/csi_pb.js'
import { CsiError } from '../../csi/index.ts'
import { LOST_VOLUME_POLICY } from '../../volumes/names.ts'
import { generatePlan } from '../workload/generate-plan.ts'
import type { WorkloadName } from '../workload/workloads.ts'
import { type PlantedBug, runPlan } from './run-plan.ts'

/** A driver's "already exists" counts as a transient error. */
const existingIsTransient: PlantedBug = {
  wrapDriver: (_env, driver) => ({
    ...driver,
    controller: {
      ...driver.controller,
      async createVolume(request, options) {
        try {
          return await driver.controller.createVolume(request, options)
        } catch (error) {
          if (!(error instanceof CsiError) || error.codeName !== 'ALREADY_EXISTS') throw error
          throw new CsiError('UNAVAILABLE', error.message)
        }
      },
    },
  }),
}

/** A watch starts only after its initial state has been read. The events in between are lost. */
const lateWatch: PlantedBug = {
  wrapServer: (client, store) => ({
    ...client,
    async *watch(kind, request) {
      let startRevision = 0
      for await (const event of client.watch(kind, request)) {
        if (event.type !== 'bookmark' && Number(event.object.metadata.resourceVersion) <= startRevision) continue
        yield event
        if (event.type === 'bookmark' && event.endsInitialEvents) startRevision = store.revision
      }
    },
  }),
}

/** A queue still reports the last state of a key that is done: its operation stays listed. */
const doneHasState: PlantedBug = {
  wrapOperations: (operations) => ({
    ...operations,
    follow(source) {
      const lastStates = new Map<string, ReturnType<typeof source.stateOf>>()
      return operations.follow({
        ...source,
        stateOf(key) {
          const state = source.stateOf(key) ?? lastStates.get(key)
          lastStates.set(key, state)
          return state
        },
      })
    },
  }),
}

/** A queue reports no state of a key that waits for a change: its operation is not listed. */
const stuckHasNoState: PlantedBug = {
  wrapOperations: (operations) => ({
    ...operations,
    follow(source) {
      const stateOf: typeof source.stateOf = (key) => {
        const state = source.stateOf(key)
        return state?.is === 'stuck' ? undefined : state
      }
      return operations.follow({ ...source, stateOf })
    },
  }),
}

/** Watches and lists show a pod on a node with a lower priority than it has: the scheduler may preempt it for any pod. */
const underratedPods: PlantedBug = {
  wrapServer: (client) => {
    const underrate = <T extends KubeObject>(pod: T): T => {
      const { spec } = pod as T & Pod
      return spec?.nodeName ? { ...pod, spec: { ...spec, priority: -100 } } : pod
    }
    return {
      ...client,
      async list(kind, request) {
        const list = await client.list(kind, request)
        return kind.kind === 'Pod' ? { ...list, items: list.items.map(underrate) } : list
      },
      async *watch(kind, request) {
        for await (const event of client.watch(kind, request))
          yield event.type !== 'bookmark' && kind.kind === 'Pod' ? { ...event, object: underrate(event.object) } : event
      },
    }
  },
}

/** Watches and lists show no volume in use: a volume may be detached while a node has it mounted. */
const noVolumesInUse: PlantedBug = {
  wrapServer: (client) => {
    const withoutUse = <T extends KubeObject>(object: T): T => {
      const { status } = object as T & Node
      return { ...object, status: { ...status, volumesInUse: [] } }
    }
    return {
      ...client,
      async list(kind, request) {
        const list = await client.list(kind, request)
        return kind.kind === 'Node' ? { ...list, items: list.items.map(withoutUse) } : list
      },
      async *watch(kind, request) {
        for await (const event of client.watch(kind, request))
          yield event.type !== 'bookmark' && kind.kind === 'Node'
            ? { ...event, object: withoutUse(event.object) }
            : event
      },
    }
  },
}

/** Watches, lists and reads show a silent node as out of service: its volumes are detached although it may still write. */
const silentIsOutOfService: PlantedBug = {
  wrapServer: (client) => {
    const taint = <T extends KubeObject>(object: T): T => {
      const { spec, status } = object as T & Node
      const isSilent = status?.conditions?.some(
        (condition) => condition.type === 'Ready' && condition.status === 'Unknown',
      )
      const taints = [...(spec?.taints ?? []), { key: OUT_OF_SERVICE_TAINT, effect: 'NoExecute' }]
      return isSilent ? { ...object, spec: { ...spec, taints } } : object
    }
    return {
      ...client,
      async get(kind, ...args) {
        const object = await client.get(kind, ...args)
        return kind.kind === 'Node' ? taint(object) : object
      },
      async list(kind, request) {
        const list = await client.list(kind, request)
        return kind.kind === 'Node' ? { ...list, items: list.items.map(taint) } : list
      },
      async *watch(kind, request) {
        for await (const event of client.watch(kind, request))
          yield event.type !== 'bookmark' && kind.kind === 'Node' ? { ...event, object: taint(event.object) } : event
      },
    }
  },
}

/** Lists and watches show classes whose lost volumes are deleted after a second, whatever their policy is. */
const everyLostVolumeIsDeleted: PlantedBug = {
  wrapServer: (client) => {
    const withShortDelay = <T extends KubeObject>(object: T): T => ({
      ...object,
      metadata: { ...object.metadata, annotations: { [LOST_VOLUME_POLICY]: 'delete-after=1s' } },
    })
    return {
      ...client,
      async list(kind, request) {
        const list = await client.list(kind, request)
        return kind.kind === 'StorageClass' ? { ...list, items: list.items.map(withShortDelay) } : list
      },
      async *watch(kind, request) {
        for await (const event of client.watch(kind, request))
          yield event.type !== 'bookmark' && kind.kind === 'StorageClass'
            ? { ...event, object: withShortDelay(event.object) }
            : event
      },
    }
  },
}

/** The driver reports success for NodeUnstageVolume, but leaves the volume mounted. */
const unstageDoesNothing: PlantedBug = {
  wrapDriver: (_env, driver) => ({
    ...driver,
    node: { ...driver.node, nodeUnstageVolume: async () => create(NodeUnstageVolumeResponseSchema) },
  }),
}

const FIRST_SEED = 1_000
/** Few seeds reach the late watch, and every change in the number of watches changes what each seed does. */
const SEEDS_MAX = 60
const TIMEOUT_MS = 900_000

describe('a planted bug', { timeout: TIMEOUT_MS }, () => {
  it('is found by "needless wait" if "already exists" counts as transient', async () => {
    expect(await findRules('placement', existingIsTransient, 'needless wait')).toContain('needless wait')
  })

  it('is found by "watch" if a watch starts after its initial state', async () => {
    expect(await findRules('cache', lateWatch, 'watch')).toContain('watch')
  })

  it('is found by "wrong preemption" if the scheduler reads priorities that are too low', async () => {
    expect(await findRules('priority', underratedPods, 'wrong preemption')).toContain('wrong preemption')
  })

  it('is found by "wrong mount" if the volumes that a node uses are not known', async () => {
    expect(await findRules('attaching', noVolumesInUse, 'wrong mount')).toContain('wrong mount')
  })

  it('is found by "two writers" if a silent node counts as off', async () => {
    expect(await findRules('lost-nodes', silentIsOutOfService, 'two writers')).toContain('two writers')
  })

  it('is found by "lost volume" if every lost volume is deleted', async () => {
    expect(await findRules('lost-nodes', everyLostVolumeIsDeleted, 'lost volume')).toContain('lost volume')
  })

  it('is found by "attachments" if a returned node keeps the mounts of removed pods', async () => {
    expect(await findRules('lost-nodes', unstageDoesNothing, 'attachments')).toContain('attachments')
  })

  it('is found by "stale operation" if a key that is done still has a state', async () => {
    expect(await findRules('provisioning', doneHasState, 'stale operation')).toContain('stale operation')
  })

  it('is found by "no operation" if a key that waits for a change has no state', async () => {
    expect(await findRules('provisioning', stuckHasNoState, 'no operation')).toContain('no operation')
  })
})

/**
 * Returns the rules that seeds violate, up to the first seed that violates this one. A bug may violate others first: a node that is
 * wrongly considered off has mounts that are detached ("wrong mount") before another node writes to the volume.
 */
async function findRules(workload: WorkloadName, plantedBug: PlantedBug, rule: string): Promise<string[]> {
  const rules: string[] = []
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS_MAX && !rules.includes(rule); seed++) {
    const { violations } = await runPlan(generatePlan(seed, { workload }), plantedBug)
    rules.push(...violations.map((violation) => violation.rule))
  }
  return rules
}
