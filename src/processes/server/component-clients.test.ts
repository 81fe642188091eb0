// Runs the controllers, each with its own user, on a server that authorizes by the bootstrap roles.
import { setMaxListeners } from 'node:events'
import { Registry } from 'prom-client'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parseFeatureGates } from '../../api/feature-gates.ts'
import { createServerFixture, type Json } from '../../apiserver/server.fixture.ts'
import { provisionerOf } from '../../controllers/provisioning/plugin.ts'
import { createClientMetrics } from '../../runtime/index.ts'
import { createMemoryPlugin } from '../../sdk/memory-plugin.fixture.ts'
import { runControllers } from '../controllers.ts'
import { createComponentClients } from './component-clients.ts'

const NAMESPACES = '/api/v1/namespaces'
const CLAIMS = `${NAMESPACES}/shop/persistentvolumeclaims`
const PODS = `${NAMESPACES}/shop/pods`
const VOLUMES = '/api/v1/persistentvolumes'
const RBAC = '/apis/rbac.authorization.k8s.io/v1'

/** Starts the controllers. With `isStoreShared` they elect a leader, like the controllers of servers that share a store. */
async function startControllers({ isStoreShared = false } = {}) {
  const api = await createServerFixture({ usesRbac: true, recordsRuleUse: true, answers: 'stowage' })
  const { clock } = api
  const { plugin } = createMemoryPlugin()
  const registry = new Registry()
  const metrics = createClientMetrics(registry)
  const problems: string[] = []
  const recordProblem = (fields: object, message: string) => void problems.push(`${message} ${JSON.stringify(fields)}`)
  const log = { debug: () => {}, info: () => {}, warn: recordProblem, error: recordProblem }
  const abort = new AbortController()
  setMaxListeners(0, abort.signal)
  const common = { clock, random: () => 0.5, log, signal: abort.signal, metrics }
  const clientOf = createComponentClients({ ...common, server: api.server, authorizer: api.authorizer })
  const controllersRun = runControllers({
    ...common,
    registry,
    client: clientOf('manager'),
    clientOf,
    isStoreShared,
    gates: parseFeatureGates(''),
    rootCa: 'PEM',
    inProcessProvisioners: [provisionerOf(plugin, { clock })],
    drivers: [],
  })
  onTestFinished(async () => {
    abort.abort()
    await api.advanceUntilSettled(controllersRun)
    await api.store.close()
  })
  const post = async (path: string, body: object) => {
    const { status, json } = await api.post(path, body)
    expect(status, JSON.stringify(json)).toBe(201)
    return json
  }
  await post(NAMESPACES, { metadata: { name: 'shop' } })
  await post('/apis/storage.k8s.io/v1/storageclasses', {
    metadata: { name: 'memory' },
    provisioner: plugin.name,
    volumeBindingMode: 'WaitForFirstConsumer',
  })
  return {
    ...api,
    post,
    problems,
    waitUntilReturns: (path: string, check: (object: Json) => boolean) =>
      api.waitUntil(async () => {
        const { status, json } = await api.get(path)
        return status === 200 && check(json)
      }, path),
    waitUntilDeleted: (path: string) => api.waitUntil(async () => (await api.get(path)).status === 404, path),
    missingRights: async () => (await registry.getSingleMetric('stowage_missing_rights')!.get()).values,
  }
}

const aClaim = (name: string) => ({
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'memory', resources: { requests: { storage: '1Gi' } } },
})

async function createNode(post: (path: string, body: object) => Promise<Json>, renewTime: string): Promise<void> {
  const readyCondition = { type: 'Ready', status: 'True', lastHeartbeatTime: renewTime, lastTransitionTime: renewTime }
  const status = { allocatable: { cpu: '1', pods: '9' }, conditions: [readyCondition] }
  await post('/api/v1/nodes', { metadata: { name: 'node-1' }, status })
}

describe('the controllers in the server process', () => {
  it.each([{ isStoreShared: false }, { isStoreShared: true }])(
    'SYS-9 work with their own roles (leader election: $isStoreShared)',
    async (options) => {
      const {
        post,
        delete: remove,
        clock,
        waitUntilReturns,
        waitUntilDeleted,
        ...cluster
      } = await startControllers(options)
      await createNode(post, new Date(clock.nowMs()).toISOString())
      await post(`${NAMESPACES}/shop/resourcequotas`, {
        metadata: { name: 'all' },
        spec: { hard: { persistentvolumeclaims: '9' } },
      })
      await waitUntilReturns(
        `${NAMESPACES}/shop/resourcequotas/all`,
        ({ status }) => status?.used?.persistentvolumeclaims === '0',
      )
      await post(CLAIMS, aClaim('data'))
      const template = { spec: aClaim('').spec }
      await post(PODS, {
        metadata: { name: 'web' },
        spec: {
          terminationGracePeriodSeconds: 0,
          containers: [{ name: 'main', image: 'none' }],
          volumes: [
            { name: 'data', persistentVolumeClaim: { claimName: 'data' } },
            { name: 'scratch', ephemeral: { volumeClaimTemplate: template } },
          ],
        },
      })
      await waitUntilReturns(`${PODS}/web`, ({ spec }) => spec.nodeName === 'node-1')
      for (const name of ['data', 'web-scratch']) {
        await waitUntilReturns(`${CLAIMS}/${name}`, ({ status }) => status?.phase === 'Bound')
      }
      await waitUntilReturns(`${NAMESPACES}/shop/events`, ({ items }) => items.length > 0)
      await remove(`${PODS}/web?gracePeriodSeconds=0`)
      await waitUntilDeleted(`${CLAIMS}/web-scratch`)
      await remove(`${CLAIMS}/data`)
      await waitUntilReturns(VOLUMES, ({ items }) => items.length === 0)
      await remove(`${NAMESPACES}/shop`)
      await waitUntilDeleted(`${NAMESPACES}/shop`)
      expect(await cluster.missingRights()).toEqual([])
      expect(cluster.problems).toEqual([])
    },
  )

  it('SYS-9 report a permission that a controller lacks, and continue after it is granted', async () => {
    const {
      post,
      delete: remove,
      get,
      patch,
      clock,
      waitUntil,
      waitUntilReturns,
      ...cluster
    } = await startControllers()
    const role = `${RBAC}/clusterroles/stowage:binding`
    const { rules } = (await get(role)).json
    const rulesWithoutPatch = rules.map((rule: Json) => ({
      ...rule,
      verbs: rule.verbs.filter((verb: string) => verb !== 'patch'),
    }))
    expect(
      (await patch(role, { rules: rulesWithoutPatch.filter(({ verbs }: Json) => verbs.length > 0) }, 'merge')).status,
    ).toBe(200)
    // The service account is also bound to the role of the upstream binder.
    await remove(`${RBAC}/clusterrolebindings/system:controller:persistent-volume-binder`)
    await createNode(post, new Date(clock.nowMs()).toISOString())
    const volume = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/v' } }
    await post(VOLUMES, { metadata: { name: 'v' }, spec: { ...volume, storageClassName: '' } })
    await post(CLAIMS, { ...aClaim('data'), spec: { ...aClaim('data').spec, storageClassName: '' } })
    await waitUntil(async () => (await cluster.missingRights()).length > 0, 'the missing permission to be counted')
    expect(cluster.problems[0]).toMatch(/^missing permission: cannot patch persistentvolumes/)
    expect(cluster.problems[0]).toContain('system:serviceaccount:kube-system:persistent-volume-binder')
    await waitUntilReturns('/api/v1/events', ({ items }) => items.some(({ reason }: Json) => reason === 'MissingRight'))
    await patch(role, { rules }, 'merge')
    await waitUntilReturns(`${CLAIMS}/data`, ({ status }) => status?.phase === 'Bound')
    await waitUntil(async () => (await cluster.missingRights()).length === 0, 'the permission to be granted')
  })
})
