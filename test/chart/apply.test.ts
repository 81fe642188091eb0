// Applies the rendered manifests of every set of values to a Stowage server, as a dry run and for real, and runs the sidecar
// through the life of a volume with the chart's roles. The server stores no Deployments, Services, policies or monitoring
// objects, so the tests apply the pod templates of workloads as Pods.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RunningFakeDriver, startFakeDriver } from '../helpers/fake-driver.ts'
import { helmSkipReason, listValueSets, type Manifest, parseManifests, RELEASE, runHelm } from '../helpers/helm.ts'
import { type RunningServer, startServer } from '../helpers/server.ts'
import { type RunningStowage, startStowage } from '../helpers/stowage.ts'

const SETS = await listValueSets()
const DRIVER = 'fake.stowage.example'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const STORAGE = '/apis/storage.k8s.io/v1'
const APPLY = { 'content-type': 'application/apply-patch+yaml' }
const MERGE = { 'content-type': 'application/merge-patch+json' }
const POLLS_MAX = 800
const AUDIT_POLICY = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [{ level: 'Metadata' }] }
/** Kinds of the chart that a Stowage server does not store. */
const UNSERVED_KINDS = [
  ...['DaemonSet', 'Deployment', 'StatefulSet'],
  ...['NetworkPolicy', 'PodDisruptionBudget', 'PrometheusRule', 'Service', 'ServiceMonitor'],
]

const skipMessage = helmSkipReason()

describe.skipIf(skipMessage)(`the chart on a Stowage server${skipMessage ? ` (skipped: ${skipMessage})` : ''}`, () => {
  let dir: string
  let server: RunningServer
  let driver: RunningFakeDriver | undefined
  let sidecar: RunningStowage | undefined
  /** Paths of the resources by group version and kind. */
  const resources = new Map<string, { readonly path: string; readonly isNamespaced: boolean }>()

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-chart-'))
    const policy = join(dir, 'audit-policy.yaml')
    await writeFile(policy, JSON.stringify(AUDIT_POLICY))
    server = await startServer({ dataDir: join(dir, 'data'), flags: ['--audit-policy-file', policy] })
    const { json: groups } = await server.call('GET', '/apis')
    const versions = groups.groups.flatMap((group: any) => group.versions.map((version: any) => version.groupVersion))
    for (const version of ['v1', ...versions]) {
      const prefix = version === 'v1' ? '/api/v1' : `/apis/${version}`
      for (const { kind, name, namespaced, verbs } of (await server.call('GET', prefix)).json.resources) {
        const isWritable = verbs.includes('patch') && !name.includes('/')
        if (isWritable) resources.set(`${version} ${kind}`, { path: name, isNamespaced: namespaced })
      }
    }
    await apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: RELEASE } })
    // The service account of another chart. The set sidecar-roles binds the roles to it.
    await apply({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'disks-controller', namespace: RELEASE },
    })
  })
  afterAll(async () => {
    await sidecar?.stop()
    await driver?.remove()
    await server?.stop()
    await rm(dir, { recursive: true, force: true })
  })

  const isServed = ({ apiVersion, kind }: Manifest) => resources.has(`${apiVersion} ${kind}`)

  /** Applies a manifest server-side; unknown fields are errors. */
  async function apply(manifest: Manifest, query = ''): Promise<void> {
    const { apiVersion, kind, metadata } = manifest
    const { path, isNamespaced } = resources.get(`${apiVersion} ${kind}`)!
    const prefix = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`
    const scope = isNamespaced ? `/namespaces/${metadata.namespace}` : ''
    const target = `${prefix}${scope}/${path}/${metadata.name}?fieldManager=chart&force=true&fieldValidation=Strict${query}`
    const { status, text } = await server.call('PATCH', target, JSON.stringify(manifest), APPLY)
    expect([200, 201], `${kind} ${metadata.name}: ${text}`).toContain(status)
  }

  async function deleteStatefulSets(): Promise<void> {
    const path = `/apis/apps/v1/namespaces/${RELEASE}/statefulsets`
    expect((await server.call('DELETE', path)).status).toBe(200)
  }

  async function render(set: string, flags: readonly string[] = []): Promise<Manifest[]> {
    const { stdout, stderr } = await runHelm('template', set, flags)
    expect(stderr).toBe('')
    return parseManifests(stdout)
  }

  it.each(SETS)('SYS-24 applies with the values %s, as a dry run and for real', async (set) => {
    const manifests = await render(set)
    const servedManifests = manifests.filter(isServed)
    expect(servedManifests.length).toBeGreaterThan(0)
    expect(manifests.filter((manifest) => !isServed(manifest) && !UNSERVED_KINDS.includes(manifest.kind))).toEqual([])
    await deleteStatefulSets() // claim templates are immutable, and the sets have different ones
    for (const manifest of servedManifests) await apply(manifest, '&dryRun=All')
    for (const manifest of servedManifests) await apply(manifest)
    for (const { metadata, spec } of manifests) {
      const template = spec?.template
      if (!template) continue
      const claims = spec.volumeClaimTemplates ?? []
      const volumes = claims.map(({ metadata: { name } }: Manifest) => ({
        name,
        persistentVolumeClaim: { claimName: name },
      }))
      const podSpec = { ...template.spec, volumes: [...template.spec.volumes, ...volumes] }
      const podMetadata = { ...template.metadata, name: metadata.name, namespace: metadata.namespace! }
      await apply({ apiVersion: 'v1', kind: 'Pod', metadata: podMetadata, spec: podSpec }, '&dryRun=All')
      for (const claim of claims)
        await apply(
          {
            apiVersion: 'v1',
            kind: 'PersistentVolumeClaim',
            metadata: { ...claim.metadata, namespace: RELEASE },
            spec: claim.spec,
          },
          '&dryRun=All',
        )
    }
  })

  async function pollUntil(path: string, isExpected: (status: number, object: any) => boolean): Promise<any> {
    for (let poll = 0; ; poll++) {
      const { status, text, json } = await server.call('GET', path)
      if (isExpected(status, json)) return json
      if (poll === POLLS_MAX) throw new Error(`timed out waiting for ${path}, which is ${text}\n${sidecar?.log()}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  /** Starts the sidecar with the arguments and the service account of the chart. */
  async function startSidecar(manifests: readonly Manifest[]): Promise<void> {
    driver = await startFakeDriver({ flags: ['--topology', 'zone=a'] })
    const { spec } = manifests.find(({ kind }) => kind === 'Deployment')!.spec.template
    const account = `/api/v1/namespaces/${RELEASE}/serviceaccounts/${spec.serviceAccountName}/token`
    const { token } = (await server.call('POST', account, { spec: {} })).json.status
    const cluster = { server: server.url, 'certificate-authority-data': Buffer.from(server.ca).toString('base64') }
    const kubeconfig = join(dir, 'sidecar.kubeconfig')
    const config = {
      clusters: [{ name: 'c', cluster }],
      users: [{ name: 'u', user: { token } }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'c',
    }
    await writeFile(kubeconfig, JSON.stringify(config))
    const args = (spec.containers[0].args as string[]).filter((arg) => !/^--(http-endpoint|csi-address)=/.test(arg))
    // The server has no ReplicaSets, through which the Deployment would own the capacity objects.
    const localArgs = ['--csi-address', driver.endpoint, '--kubeconfig', kubeconfig, '--capacity-ownerref-level=-1']
    sidecar = await startStowage({ args: [...args, ...localArgs], env: { NAMESPACE: RELEASE, POD_NAME: 'sidecar' } })
  }

  it('SYS-9 SYS-24 lets the sidecar provision, attach, expand, modify and delete a volume with the roles of the chart', async () => {
    // Without `operations`, the server would deny the report that the sidecar sends a second after the first driver call.
    const features = ['attributes', 'capacity', 'leader-election', 'operations', 'secrets', 'topology', 'transactions']
    const manifests = await render('sidecar', [
      ...['--set', `sidecar.driverName=${DRIVER}`],
      ...['--set', `rbac.features={${features.join()}}`],
      ...['--set', 'sidecar.storageClasses[0].name=fast,sidecar.storageClasses[0].volumeBindingMode=Immediate'],
      ...['--set', 'sidecar.storageClasses[0].allowVolumeExpansion=true'],
      ...['--set', 'sidecar.extraArgs={--capacity-for-immediate-binding}'],
    ])
    for (const manifest of manifests.filter(isServed)) await apply(manifest)
    const drivers = [{ name: DRIVER, nodeID: 'node-1', topologyKeys: ['zone'] }]
    await server.call('POST', '/api/v1/nodes', { metadata: { name: 'node-1', labels: { zone: 'a' } } })
    await server.call('POST', `${STORAGE}/csinodes`, { metadata: { name: 'node-1' }, spec: { drivers } })
    await startSidecar(manifests)

    const attributesClass = { metadata: { name: 'gold' }, driverName: DRIVER, parameters: { iops: '500' } }
    expect((await server.call('POST', `${STORAGE}/volumeattributesclasses`, attributesClass)).status).toBe(201)
    const requests = { storage: '1Gi' }
    const accessModes = ['ReadWriteOnce']
    // A volume with a file system would be expanded on a node too.
    const spec = { storageClassName: 'fast', volumeMode: 'Block', accessModes, resources: { requests } }
    expect((await server.call('POST', CLAIMS, { metadata: { name: 'orders' }, spec })).status).toBe(201)
    const { spec: boundSpec } = await pollUntil(`${CLAIMS}/orders`, (_, claim) => claim.status?.phase === 'Bound')
    await pollUntil(`${STORAGE}/namespaces/${RELEASE}/csistoragecapacities`, (_, { items }) => items.length > 0)

    const source = { persistentVolumeName: boundSpec.volumeName }
    const attachment = { metadata: { name: 'orders' }, spec: { attacher: DRIVER, nodeName: 'node-1', source } }
    expect((await server.call('POST', `${STORAGE}/volumeattachments`, attachment)).status).toBe(201)
    await pollUntil(`${STORAGE}/volumeattachments/orders`, (_, { status }) => status?.attached === true)
    await server.call('DELETE', `${STORAGE}/volumeattachments/orders`)
    await pollUntil(`${STORAGE}/volumeattachments/orders`, (status) => status === 404)

    const change = { volumeAttributesClassName: 'gold', resources: { requests: { storage: '2Gi' } } }
    await server.call('PATCH', `${CLAIMS}/orders`, { spec: change }, MERGE)
    await pollUntil(`${CLAIMS}/orders`, (_, { status }) => status.capacity.storage === '2Gi')
    await pollUntil(`${CLAIMS}/orders`, (_, { status }) => status.currentVolumeAttributesClassName === 'gold')
    await server.call('DELETE', `${CLAIMS}/orders`)
    await pollUntil(`/api/v1/persistentvolumes/${boundSpec.volumeName}`, (status) => status === 404)

    const user = `system:serviceaccount:${RELEASE}:stowage`
    const lines = (await readFile(join(dir, 'data', 'audit', 'audit.log'), 'utf8')).trim().split('\n')
    const events = lines.map((line) => JSON.parse(line)).filter((event) => event.user.username === user)
    expect(events.length).toBeGreaterThan(10)
    const deniedEvents = events.filter(({ responseStatus }) => responseStatus?.code === 403)
    expect(deniedEvents.map(({ verb, requestURI }) => `${verb} ${requestURI}`)).toEqual([])
  })
})
