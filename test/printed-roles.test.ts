// Runs every component in its own process with exactly the roles that `stowage rbac print` prints for it, bound to a
// ServiceAccount, through the whole lifecycle of volumes. The server's audit log shows that no request was denied.
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { PRINTED_COMPONENTS, type PrintedComponent } from '../src/cli/commands/rbac/select-rules.ts'
import { buildProgram } from './helpers/build-program.ts'
import { createDaemon, type Daemon } from './helpers/daemon.ts'
import { findLeftoversBelow, type HostLeftovers } from './helpers/host-leftovers.ts'
import { runStowage } from './helpers/run-stowage.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const DRIVER = 'local.csi.stowage.dev'
const PLUGIN = 'example.com/memory'
const PLUGIN_DRIVER = 'memory.example.com'
const NODE = 'node-1'
/** The namespace of the sidecars. The lease of the other components is in kube-system. */
const STORAGE_NAMESPACE = 'storage'
const CORE = '/api/v1/namespaces/default'
const PODS = `${CORE}/pods`
const CLAIMS = `${CORE}/persistentvolumeclaims`
const VOLUMES = '/api/v1/persistentvolumes'
const STORAGE = '/apis/storage.k8s.io/v1'
const CAPACITIES = `${STORAGE}/namespaces/${STORAGE_NAMESPACE}/csistoragecapacities`

const POLLS_MAX = 1_500
const AUDIT_POLICY = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [{ level: 'Metadata' }] }

/** A provisioner built with the SDK that stores no data. */
const PLUGIN_PROGRAM = (sdk: string) => `
  import { defineProvisioner, parameter, runProvisioner } from ${JSON.stringify(sdk)}
  await runProvisioner(defineProvisioner({
    name: ${JSON.stringify(PLUGIN)},
    csiDriver: ${JSON.stringify(PLUGIN_DRIVER)},
    attributes: { tier: parameter.text({ doc: 'kind of memory' }) },
    provision: async ({ volumeName, sizeBytes }) => ({
      sizeBytes,
      source: { csi: { driver: ${JSON.stringify(PLUGIN_DRIVER)}, volumeHandle: volumeName } },
    }),
    delete: async () => {},
    expand: async ({ sizeBytes }) => ({ sizeBytes }),
    modify: async () => {},
  }))`

const SIDECARS: readonly PrintedComponent[] = ['sidecar', 'provisioner', 'resizer', 'sdk']
const namespaceOf = (component: PrintedComponent): string =>
  SIDECARS.includes(component) ? STORAGE_NAMESPACE : 'kube-system'
/** The components that run until they are stopped. The others are commands. */
type DaemonComponent = Exclude<PrintedComponent, 'capacity-templates' | 'leaks'>
const isDaemon = (component: PrintedComponent): component is DaemonComponent =>
  component !== 'capacity-templates' && component !== 'leaks'
const userOf = (component: PrintedComponent): string =>
  `system:serviceaccount:${namespaceOf(component)}:role-of-${component}`

describe('the components with the roles that stowage rbac print prints', () => {
  let dir: string
  let leftovers: HostLeftovers
  let server: RunningServer
  const daemons: Daemon[] = []

  beforeAll(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-printed-roles-')))
    leftovers = await findLeftoversBelow(dir)
    await mkdir(join(dir, 'pool'))
    const policy = join(dir, 'audit-policy.yaml')
    await writeFile(policy, JSON.stringify(AUDIT_POLICY))
    const flags = ['--audit-policy-file', policy]
    server = await startServer({ dataDir: join(dir, 'data'), command: 'server', flags })
    await post('/api/v1/namespaces', { metadata: { name: STORAGE_NAMESPACE } })
    await startDaemons()
  })
  afterAll(async () => {
    for (const daemon of daemons) await daemon.stop()
    await server?.stop()
    await leftovers?.remove()
    await rm(dir, { recursive: true, force: true })
  })

  async function post(path: string, body: object): Promise<any> {
    const { status, text, json } = await server.call('POST', path, body)
    expect(status, `POST ${path}: ${text}`).toBe(201)
    return json
  }
  async function patch(path: string, body: object): Promise<void> {
    const { status, text } = await server.call('PATCH', path, body, { 'content-type': 'application/merge-patch+json' })
    expect(status, `PATCH ${path}: ${text}`).toBe(200)
  }
  const remove = (path: string) => server.call('DELETE', path)
  /** Polls until the response fulfils the condition. */
  async function pollUntil(path: string, isExpected: (status: number, object: any) => boolean): Promise<any> {
    for (let attempt = 0; ; attempt++) {
      const { status, text, json } = await server.call('GET', path)
      if (isExpected(status, json)) return json
      if (attempt === POLLS_MAX) throw new Error(`timed out waiting for ${path}, which is ${text}`)
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
  }
  const waitUntil = (path: string, isExpected: (object: any) => boolean = () => true): Promise<any> =>
    pollUntil(path, (status, object) => status === 200 && isExpected(object))
  const waitUntilDeleted = (path: string) => pollUntil(path, (status) => status === 404)

  /** Applies the printed roles, and writes a kubeconfig with a token of the account that they are bound to. */
  async function createKubeconfig(component: PrintedComponent): Promise<string> {
    const namespace = namespaceOf(component)
    const account = `role-of-${component}`
    const flags = ['--component', component, '--namespace', namespace, '--service-account', account]
    const { stdout, stderr, code } = await runStowage('rbac', 'print', ...flags)
    expect(code, stderr).toBe(0)
    for (const document of parseAllDocuments(stdout)) {
      const object = document.toJS()
      const prefix = object.apiVersion === 'v1' ? '/api/v1' : `/apis/${object.apiVersion}`
      const scope = object.metadata.namespace ? `/namespaces/${object.metadata.namespace}` : ''
      await post(`${prefix}${scope}/${object.kind.toLowerCase()}s`, object)
    }
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`
    const { token } = (await post(path, { spec: {} })).status
    const cluster = { server: server.url, 'certificate-authority-data': Buffer.from(server.ca).toString('base64') }
    const kubeconfig = join(dir, `${component}.kubeconfig`)
    const config = {
      clusters: [{ name: 'c', cluster }],
      users: [{ name: 'u', user: { token } }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'c',
    }
    await writeFile(kubeconfig, JSON.stringify(config))
    return kubeconfig
  }

  async function startDaemons(): Promise<void> {
    const socket = join(dir, 'csi.sock')
    const pluginProgram = join(dir, 'plugin.mjs')
    await writeFile(
      pluginProgram,
      PLUGIN_PROGRAM(join(dirname(await buildProgram()), 'packages', 'provisioner', 'provisioner.js')),
    )
    const election = ['--leader-election', '--leader-election-namespace', STORAGE_NAMESPACE]
    const env = { NAMESPACE: STORAGE_NAMESPACE, POD_NAME: 'provisioner-0' }
    await post(`/api/v1/namespaces/${STORAGE_NAMESPACE}/pods`, {
      metadata: { name: env.POD_NAME },
      // On a node that does not exist, the pod and with it the capacity objects would be deleted after 40 s.
      spec: { schedulerName: 'none', containers: [{ name: 'main', image: 'none' }] },
    })
    const capacity = ['--enable-capacity=central', '--capacity-ownerref-level=0', '--capacity-poll-interval=1s']
    const args: Readonly<Record<DaemonComponent, readonly string[]>> = {
      controllers: ['controllers'],
      scheduler: ['scheduler'],
      'capacity-cleanup': ['capacity-cleanup', '--gone-for', '1s'],
      node: ['node', '--node-name', NODE, '--root-dir', join(dir, 'agent'), '--driver-socket', socket],
      sidecar: ['sidecar', '--csi-address', socket, '--controllers', 'attacher', ...election],
      provisioner: ['provisioner', '--csi-address', socket, ...election, ...capacity],
      resizer: ['resizer', '--csi-address', socket, '--check-capacity', ...election],
      sdk: ['--leader-election-namespace', STORAGE_NAMESPACE],
    }
    const driverFlags = ['--node-id', NODE, '--pool', join(dir, 'pool'), '--pool-size', '4Gi']
    daemons.push(
      await createDaemon({ name: 'driver', args: ['driver', '--endpoint', `unix://${socket}`, ...driverFlags] }),
    )
    const createComponent = async (component: DaemonComponent): Promise<Daemon> => {
      const kubeconfig = ['--kubeconfig', await createKubeconfig(component)]
      const program = component === 'sdk' ? { program: pluginProgram } : {}
      const isReady = ({ stderr, stdout }: { stderr: string; stdout: string }) =>
        component === 'node' ? stdout.includes('is ready') : stderr.includes('"started"')
      return createDaemon({ name: component, args: [...args[component], ...kubeconfig], env, isReady, ...program })
    }
    daemons.push(...(await Promise.all(PRINTED_COMPONENTS.filter(isDaemon).map(createComponent))))
    await Promise.all(daemons.map((daemon) => daemon.start()))
  }

  const aClaim = (name: string, storageClassName: string, spec: object = {}) => ({
    metadata: { name },
    spec: { storageClassName, accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '256Mi' } }, ...spec },
  })
  const aPod = (name: string, volume: object) => ({
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'main', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
      volumes: [{ name: 'data', ...volume }],
    },
  })
  const isRunning = ({ status }: any) => status?.phase === 'Running'

  it('SYS-9 provision, bind, attach, publish, expand, modify, copy and delete volumes without a denied request', async () => {
    await post(`${CORE}/secrets`, { metadata: { name: 'login' }, stringData: { user: 'root' } })
    await post(`${STORAGE}/csidrivers`, {
      metadata: { name: DRIVER },
      spec: { attachRequired: true, storageCapacity: true, podInfoOnMount: true },
    })
    const secretParameters = Object.fromEntries(
      ['provisioner', 'controller-expand', 'controller-modify', 'node-publish'].flatMap((call) => [
        [`csi.storage.k8s.io/${call}-secret-name`, 'login'],
        [`csi.storage.k8s.io/${call}-secret-namespace`, 'default'],
      ]),
    )
    await post(`${STORAGE}/storageclasses`, {
      metadata: { name: 'local' },
      provisioner: DRIVER,
      volumeBindingMode: 'WaitForFirstConsumer',
      allowVolumeExpansion: true,
      parameters: secretParameters,
    })
    const memoryClass = { metadata: { name: 'memory' }, provisioner: PLUGIN, allowVolumeExpansion: true }
    await post(`${STORAGE}/storageclasses`, memoryClass)
    await post(`${STORAGE}/volumeattributesclasses`, {
      metadata: { name: 'quick' },
      driverName: PLUGIN_DRIVER,
      parameters: { tier: 'quick' },
    })
    for (const iops of ['500', '900']) {
      await post(`${STORAGE}/volumeattributesclasses`, {
        metadata: { name: `iops-${iops}` },
        driverName: DRIVER,
        parameters: { iops },
      })
    }
    await waitUntil(CAPACITIES, ({ items }) => items.length > 0)

    await post(CLAIMS, aClaim('orders', 'local', { volumeAttributesClassName: 'iops-500' }))
    await post(PODS, aPod('shop', { persistentVolumeClaim: { claimName: 'orders' } }))
    await waitUntil(`${PODS}/shop`, isRunning)
    await patch(`${CLAIMS}/orders`, { spec: { resources: { requests: { storage: '512Mi' } } } })
    await waitUntil(`${CLAIMS}/orders`, ({ status }) => status.capacity.storage === '512Mi')
    await patch(`${CLAIMS}/orders`, { spec: { volumeAttributesClassName: 'iops-900' } })
    await waitUntil(`${CLAIMS}/orders`, ({ status }) => status.currentVolumeAttributesClassName === 'iops-900')
    const template = aClaim('', 'local', {
      dataSource: { kind: 'PersistentVolumeClaim', name: 'orders' },
      resources: { requests: { storage: '512Mi' } },
    })
    await post(PODS, aPod('reader', { ephemeral: { volumeClaimTemplate: { spec: template.spec } } }))
    await waitUntil(`${PODS}/reader`, isRunning)
    await post(CLAIMS, aClaim('notes', 'memory'))
    await waitUntil(`${CLAIMS}/notes`, ({ status }) => status?.phase === 'Bound')
    await patch(`${CLAIMS}/notes`, { spec: { resources: { requests: { storage: '512Mi' } } } })
    await waitUntil(`${CLAIMS}/notes`, ({ status }) => status.capacity.storage === '512Mi')
    await patch(`${CLAIMS}/notes`, { spec: { volumeAttributesClassName: 'quick' } })
    await waitUntil(`${CLAIMS}/notes`, ({ status }) => status.currentVolumeAttributesClassName === 'quick')

    for (const name of ['shop', 'reader']) await remove(`${PODS}/${name}`)
    await waitUntilDeleted(`${CLAIMS}/reader-data`)
    for (const name of ['orders', 'notes']) {
      await remove(`${CLAIMS}/${name}`)
      await waitUntilDeleted(`${CLAIMS}/${name}`)
    }
    await waitUntil(VOLUMES, ({ items }) => items.length === 0)
    await waitUntil(`${STORAGE}/volumeattachments`, ({ items }) => items.length === 0)
    await remove(`${STORAGE}/volumeattributesclasses/iops-500`)
    await waitUntilDeleted(`${STORAGE}/volumeattributesclasses/iops-500`)

    await post(CAPACITIES, {
      metadata: {
        name: 'of-a-removed-node',
        labels: {
          'csi.storage.k8s.io/drivername': DRIVER,
          'csi.storage.k8s.io/managed-by': 'external-provisioner-removed',
        },
      },
      storageClassName: 'local',
      capacity: '1Gi',
    })
    await waitUntilDeleted(`${CAPACITIES}/of-a-removed-node`)
    await post('/api/v1/namespaces', { metadata: { name: 'shop' } })
    await waitUntil('/api/v1/namespaces/shop/serviceaccounts/default')
    const quota = { metadata: { name: 'all' }, spec: { hard: { persistentvolumeclaims: '1' } } }
    await post('/api/v1/namespaces/shop/resourcequotas', quota)
    await waitUntil('/api/v1/namespaces/shop/resourcequotas/all', ({ status }) => status?.used !== undefined)
    await remove('/api/v1/namespaces/shop')
    await waitUntilDeleted('/api/v1/namespaces/shop')

    const templatesRole = ['--kubeconfig', await createKubeconfig('capacity-templates')]
    for (const action of [['publish', '--group', 'workers', '--like', NODE], ['list'], ['remove', 'workers']]) {
      const { code, stderr } = await runStowage('capacity', 'templates', ...action, ...templatesRole)
      expect(code, stderr).toBe(0)
    }
    const leaksRole = ['--kubeconfig', await createKubeconfig('leaks'), '--csi-address', join(dir, 'csi.sock')]
    const { code, stdout, stderr } = await runStowage('leaks', ...leaksRole)
    expect(code, stdout + stderr).toBe(0)

    expect(daemons.flatMap(({ unexpectedExits }) => unexpectedExits)).toEqual([])
    for (const daemon of daemons) await daemon.stop()
    for (const daemon of daemons) expect(daemon.log()).not.toMatch(/missing permission|until a role grants it/)
    expect(await server.stop()).toBe(0)
    const events = (await readFile(join(dir, 'data', 'audit', 'audit.log'), 'utf8'))
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line))
    const users = new Set(events.map(({ user }) => user.username))
    expect(PRINTED_COMPONENTS.filter((component) => !users.has(userOf(component)))).toEqual([])
    const deniedEvents = events.filter(
      ({ responseStatus }) => responseStatus?.code === 403 || responseStatus?.code === 401,
    )
    expect(deniedEvents.map(({ user, verb, requestURI }) => `${user.username}: ${verb} ${requestURI}`)).toEqual([])
  })
})
