// Fixture of the stateful set controller tests: the controller on an API server, a substitute for the scheduler and the node
// agents that makes pods ready, and a client that crashes the controller before a chosen write.
import { setMaxListeners } from 'node:events'
import { createServerFixture, type Json, type ServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { createCacheSet, type EventRecorder } from '../../runtime/index.ts'
import { createStatefulSetController } from './index.ts'

export const SETS = '/apis/apps/v1/namespaces/default/statefulsets'
export const REVISIONS = '/apis/apps/v1/namespaces/default/controllerrevisions'
export const PODS = '/api/v1/namespaces/default/pods'
export const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'

export interface ControllerFixture {
  readonly server: ServerFixture
  /** Recorded events as `Reason: message`. */
  readonly events: string[]
  /** The number of writes by the current controller. */
  writeCount(): number
  readonly hasCrashed: () => boolean
  /** Starts a controller that crashes before its nth write, if `crashAtWrite` is set. */
  start(crashAtWrite?: number): void
  stop(): Promise<void>
  createSet(spec?: object): Promise<void>
  patchSet(patch: object): Promise<void>
  /** Makes all pods ready, except those whose image is `broken`, and returns their names. */
  makePodsReady(): Promise<string[]>
  /** Makes pods ready until the condition is true. */
  settle(condition: () => Promise<boolean>, goal: string): Promise<void>
  podNames(): Promise<string[]>
  list(url: string): Promise<Json[]>
  close(): Promise<void>
}

const CRASH = new Error('the controller has crashed')

export async function createControllerFixture(): Promise<ControllerFixture> {
  const server = await createServerFixture()
  const events: string[] = []
  let writes = 0
  let hasCrashed = false
  let stop = async () => {}

  const list = async (url: string): Promise<Json[]> => (await server.get(url)).json.items
  const podNames = async () => (await list(PODS)).map(({ metadata }) => metadata.name).sort()

  function crashingClient(client: Client, crashAtWrite: number | undefined): Client {
    async function write<T>(send: () => Promise<T>): Promise<T> {
      if (hasCrashed) throw CRASH
      if (++writes !== crashAtWrite) return send()
      hasCrashed = true
      throw CRASH
    }
    return {
      ...client,
      create: (...args) => write(() => client.create(...args)),
      patch: (...args) => write(() => client.patch(...args)),
      delete: (...args) => write(() => client.delete(...args)),
    }
  }

  function start(crashAtWrite?: number): void {
    writes = 0
    hasCrashed = false
    const client = crashingClient(server.clientOf('stateful-sets'), crashAtWrite)
    const recorder: EventRecorder = {
      record: (_kind, _object, { reason, message }) => void events.push(`${reason}: ${message}`),
      run: async () => {},
      stats: () => ({ pending: 0, dropped: 0, sent: 0 }),
    }
    const common = { client, clock: server.clock, random: () => 0.5 }
    const caches = createCacheSet(common)
    const abort = new AbortController()
    setMaxListeners(0, abort.signal)
    const controller = createStatefulSetController({ ...common, caches, log: silentLog, events: recorder })
    const run = controller.run(abort.signal)
    stop = async () => {
      abort.abort()
      await server.advanceUntilSettled(run)
      await caches.stop()
    }
  }

  async function makePodsReady(): Promise<string[]> {
    const readyNames: string[] = []
    for (const { metadata, spec, status } of await list(PODS)) {
      if (metadata.deletionTimestamp || status.phase !== 'Pending' || spec.containers[0].image === 'broken') continue
      const conditions = [
        { type: 'Ready', status: 'True', lastTransitionTime: new Date(server.clock.nowMs()).toISOString() },
      ]
      await server.patch(`${PODS}/${metadata.name}/status`, { status: { phase: 'Running', conditions } }, 'merge')
      readyNames.push(metadata.name)
    }
    return readyNames
  }

  return {
    server,
    events,
    writeCount: () => writes,
    hasCrashed: () => hasCrashed,
    start,
    stop: () => stop(),
    async createSet(spec = {}) {
      const { status, text } = await server.post(SETS, {
        metadata: { name: 'web' },
        spec: {
          replicas: 3,
          selector: { matchLabels: { app: 'web' } },
          template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'v1' }] } },
          volumeClaimTemplates: [
            {
              metadata: { name: 'data' },
              spec: {
                accessModes: ['ReadWriteOnce'],
                storageClassName: '',
                resources: { requests: { storage: '1Gi' } },
              },
            },
          ],
          ...spec,
        },
      })
      if (status !== 201) throw new Error(text)
    },
    async patchSet(patch) {
      const { status, text } = await server.patch(`${SETS}/web`, patch, 'strategic-merge')
      if (status !== 200) throw new Error(text)
    },
    makePodsReady,
    settle: (condition, goal) =>
      server.waitUntil(async () => {
        await makePodsReady()
        return condition()
      }, goal),
    podNames,
    list,
    async close() {
      await stop()
      await server.store.close()
    },
  }
}
