// Runs `stowage sidecar` with a role that lacks the rules of the features attributes, capacity and topology.
import { expect, it, vi } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { ADMIN, type Json } from '../../../apiserver/server.fixture.ts'
import { systemClock, systemRandom } from '../../../base/clock.ts'
import { startProgramFixture } from '../../program.fixture.ts'
import { printRoles } from '../rbac/print.ts'
import { runStowageSidecar } from './run.ts'
import { readSidecarSettings } from './settings.ts'

const DRIVER = 'fake.stowage.example'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const STORAGE = '/apis/storage.k8s.io/v1'
const WORKER = {
  name: 'system:serviceaccount:default:worker',
  groups: ['system:serviceaccounts', 'system:authenticated'],
}
const WAIT = { timeout: 20_000, interval: 20 }

it('PLUS-9 features without their permissions are out of service and logged once each, and the other features work', async () => {
  const program = await startProgramFixture({
    usesRbac: true,
    authenticator: {
      authenticate: ({ authorization }) => ({
        is: 'authenticated',
        user: authorization === 'Bearer sidecar' ? WORKER : ADMIN,
      }),
      authenticateToken: () => undefined,
    },
  })
  const { api, signal } = program
  const post = async (path: string, body: object): Promise<void> => {
    const { status, json } = await api.post(path, body)
    expect(status, JSON.stringify(json)).toBe(201)
  }
  const features = ['provisioner', 'resizer', 'attacher', 'leader-election', 'transactions']
  const roles = printRoles({ component: 'sidecar', namespace: 'default', serviceAccount: 'worker', features })
  for (const document of parseAllDocuments(roles)) {
    const { apiVersion, kind, metadata, ...object }: Json = document.toJS()
    const prefix = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`
    const namespace = metadata.namespace ? `/namespaces/${metadata.namespace}` : ''
    await post(`${prefix}${namespace}/${kind.toLowerCase()}s`, { apiVersion, kind, metadata, ...object })
  }
  const segments = { zone: 'a' }
  const { endpoint } = await program.serveFakeDriver({
    pools: [{ name: 'pool', capacityBytes: 100 * 1024 ** 3, segments }],
    nodes: [{ id: 'node-1', segments }],
  })
  program.runOtherControllers()
  const allowedTopologies = [{ matchLabelExpressions: [{ key: 'zone', values: ['a'] }] }]
  await post(`${STORAGE}/storageclasses`, { metadata: { name: 'anywhere' }, provisioner: DRIVER })
  await post(`${STORAGE}/storageclasses`, {
    metadata: { name: 'zonal' },
    provisioner: DRIVER,
    allowVolumeExpansion: true,
    allowedTopologies,
  })
  const createClaim = (name: string, storageClassName: string) =>
    post(CLAIMS, {
      metadata: { name },
      spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests: { storage: '1Gi' } } },
    })
  await createClaim('waits', 'anywhere')
  await createClaim('orders', 'zonal')

  const lines: string[] = []
  const write = (level: string) => (_fields: object, message: string) => void lines.push(`${level} ${message}`)
  const log = { debug: () => {}, info: write('info'), warn: write('warn'), error: write('error') }
  const settings = readSidecarSettings({
    csiAddress: endpoint,
    kubeconfig: await program.writeKubeconfig('sidecar'),
    leaderElection: 'true',
    enableCapacity: 'central',
    capacityOwnerrefLevel: '-1',
    retryIntervalStart: '10ms',
  })
  const env = { NAMESPACE: 'default', POD_NAMESPACE: 'default' }
  const deps = { clock: systemClock(), random: systemRandom(), log, signal, env, write: () => {} }
  void program.track(runStowageSidecar({ ...deps, settings }))

  const waitForStatus = (expectedStatus: object) =>
    vi.waitFor(async () => expect((await api.get(`${CLAIMS}/orders`)).json.status).toMatchObject(expectedStatus), WAIT)
  await waitForStatus({ phase: 'Bound' })
  await api.patch(`${CLAIMS}/orders`, { spec: { resources: { requests: { storage: '2Gi' } } } }, 'merge')
  await waitForStatus({ allocatedResources: { storage: '2Gi' } })

  const listFeaturesOutOfService = () =>
    lines.flatMap((line) => /^warn the feature (\S+) is out of service/.exec(line)?.[1] ?? []).sort()
  await vi.waitFor(() => expect(listFeaturesOutOfService()).toEqual(['attributes', 'capacity', 'topology']), WAIT)
  expect(lines.filter((line) => line.startsWith('error'))).toEqual([])
  const listEventMessages = async (reason: string, name: string): Promise<string[]> => {
    const { items } = (await api.get('/api/v1/namespaces/default/events')).json as Json
    return items
      .filter((event: Json) => event.reason === reason && event.involvedObject.name === name)
      .map(({ message }: Json) => message)
  }
  await vi.waitFor(async () => {
    const messages = await listEventMessages('MissingRight', 'stowage-sidecar-fake-stowage-example')
    const features = messages.map((message) => /^the feature (\S+) is out of service: cannot /.exec(message)?.[1])
    expect(features.sort()).toEqual(listFeaturesOutOfService())
    expect(await listEventMessages('ProvisioningFailed', 'waits')).toEqual([
      expect.stringContaining('the provisioner needs permission to list and watch nodes and csinodes.storage.k8s.io'),
    ])
  }, WAIT)
})
