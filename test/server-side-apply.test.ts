// Tests `kubectl apply --server-side` with each kubectl that kubectls.ts finds, each against a separate server. Each test has its
// own object.
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findKubectls } from './helpers/kubectls.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { createKubectl, type Kubectl } from './kubectl/kubectl.ts'

const kubectls = await findKubectls()

describe.concurrent.each(kubectls)('apply --server-side by kubectl $version', (program) => {
  let dir: string
  let server: RunningServer
  let kubectl: Kubectl
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-ssa-'))
    server = await startServer({ dataDir: join(dir, 'data') })
    await mkdir(join(dir, 'home'))
    kubectl = createKubectl({ program, kubeconfig: server.kubeconfig, namespace: 'default', home: join(dir, 'home') })
  })
  afterAll(async () => {
    await server?.stop()
    await rm(dir, { recursive: true })
  })

  const apply = (stdin: string, flags = '') => kubectl.out(`apply --server-side${flags && ` ${flags}`} -f -`, { stdin })
  const getObject = async (path: string) => (await server.call('GET', path)).json
  const getConfigMap = (name: string) => getObject(`/api/v1/namespaces/default/configmaps/${name}`)

  it.sequential('SYS-2 creates, keeps and changes fields, and removes fields that were removed from the file', async () => {
    expect(await apply(configMapManifest('a', { colour: 'green', size: 'large' }))).toBe(
      'configmap/a serverside-applied\n',
    )
    const objectBefore = await getConfigMap('a')
    expect(objectBefore.data).toEqual({ colour: 'green', size: 'large' })
    await apply(configMapManifest('a', { colour: 'green', size: 'large' }))
    expect(await getConfigMap('a')).toEqual(objectBefore)
    await apply(configMapManifest('a', { colour: 'blue' }))
    expect((await getConfigMap('a')).data).toEqual({ colour: 'blue' })
    expect(ownersOf(await getConfigMap('a'))).toEqual({ 'kubectl Apply': { 'f:data': { 'f:colour': {} } } })
  })

  it.sequential('SYS-2 removes only fields of the same manager if two managers share an object', async () => {
    await apply(configMapManifest('b', { first: '1' }), '--field-manager=first')
    await apply(configMapManifest('b', { second: '1' }), '--field-manager=second')
    await apply(configMapManifest('b', {}), '--field-manager=first')
    expect((await getConfigMap('b')).data).toEqual({ second: '1' })
  })

  it.sequential('SYS-2 exits with 1 and names the manager and the field of a conflict, unless it is forced', async () => {
    await apply(configMapManifest('c', { colour: 'green' }), '--field-manager=first')
    const stdin = configMapManifest('c', { colour: 'red' })
    const text = await kubectl.expectError('apply --server-side --field-manager=second -f -', { stdin })
    expect(text).toContain('Apply failed with 1 conflict: conflict with "first": .data.colour')
    expect(text).toContain('--force-conflicts')
    await apply(stdin, '--field-manager=second --force-conflicts')
    expect((await getConfigMap('c')).data).toEqual({ colour: 'red' })
    expect(ownersOf(await getConfigMap('c'))).toEqual({ 'second Apply': { 'f:data': { 'f:colour': {} } } })
  })

  it.sequential('SYS-2 assigns fields set by other commands to those commands', async () => {
    await apply(configMapManifest('d', { colour: 'green' }))
    await kubectl.out('label cm d team=red')
    await kubectl.out(['patch', 'cm', 'd', '--type=merge', '-p', '{"data":{"size":"large"}}'])
    const text = await kubectl.expectError('apply --server-side -f -', {
      stdin: configMapManifest('d', { size: 'small' }),
    })
    expect(text).toMatch(/conflict with "kubectl-patch" using v1: \.data\.size/)
    await apply(configMapManifest('d', {}))
    const { data, metadata } = await getConfigMap('d')
    expect({ data, labels: metadata.labels }).toEqual({ data: { size: 'large' }, labels: { team: 'red' } })
  })

  it.sequential('SYS-2 takes over an object of client-side apply without a conflict', async () => {
    await kubectl.out('apply -f -', { stdin: configMapManifest('e', { colour: 'green', size: 'large' }) })
    await apply(configMapManifest('e', { colour: 'blue', size: 'large' }))
    expect((await getConfigMap('e')).data).toEqual({ colour: 'blue', size: 'large' })
    await apply(configMapManifest('e', { colour: 'blue' }))
    const { data, metadata } = await getConfigMap('e')
    expect(data.colour).toBe('blue')
    const managers = metadata.managedFields.map(({ manager, operation }: any) => `${manager} ${operation}`)
    expect(managers).toContain('kubectl Apply')
    if (kubectl.minor >= OWNERS_MIGRATED_SINCE) {
      expect(managers).not.toContain('kubectl-client-side-apply Update')
      expect(data).toEqual({ colour: 'blue' })
    }
  })

  it.sequential('SYS-2 assigns list items such as containers, variables and ports to the manager that set them', async () => {
    const ports = 'ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]'
    await apply(podManifest(`{name: web, image: web:1, env: [{name: A, value: "1"}, {name: B, value: "2"}], ${ports}}`))
    await apply(podManifest('{name: web, image: web:1}', 'labels: {applied: "true"}'), '--field-manager=other')
    const storedPod = await getObject('/api/v1/namespaces/default/pods/p')
    expect(
      Object.keys(ownersOf(storedPod)['kubectl Apply']['f:spec']['f:containers']['k:{"name":"web"}']['f:ports']),
    ).toEqual(['k:{"containerPort":80,"protocol":"TCP"}', 'k:{"containerPort":80,"protocol":"UDP"}'])
    const stdin = podManifest('{name: web, image: web:2}')
    const text = await kubectl.expectError('apply --server-side --field-manager=third -f -', { stdin })
    expect(text).toContain('.spec.containers[name="web"].image')
  })

  it.sequential('SYS-2 assigns each driver of a CSINode to its own manager', async () => {
    await kubectl.out('apply -f -', { stdin: 'apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n' })
    await apply(csiNodeManifest('{name: a.example, nodeID: id-a, topologyKeys: [zone]}'), '--field-manager=a')
    await apply(csiNodeManifest('{name: b.example, nodeID: id-b, topologyKeys: []}'), '--field-manager=b')
    const { spec } = await getObject('/apis/storage.k8s.io/v1/csinodes/n1')
    expect(spec.drivers.map(({ name, nodeID }: any) => [name, nodeID])).toEqual([
      ['a.example', 'id-a'],
      ['b.example', 'id-b'],
    ])
    await apply(
      'apiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: n1}\nspec: {drivers: []}\n',
      '--field-manager=a',
    )
    const csiNode = await getObject('/apis/storage.k8s.io/v1/csinodes/n1')
    expect(csiNode.spec.drivers.map(({ name }: any) => name)).toEqual(['b.example'])
  })

  it.sequential("SYS-2 applies conditions through a claim's status", async () => {
    await apply(claimManifest())
    if (kubectl.minor < SUBRESOURCE_SINCE) return // kubectl has no apply --subresource
    await apply(
      `${claimManifest()}status: {conditions: [{type: Resizing, status: "True"}]}\n`,
      '--subresource=status --field-manager=s',
    )
    const storedClaim = await getObject('/api/v1/namespaces/default/persistentvolumeclaims/c')
    expect(storedClaim.status).toMatchObject({ conditions: [{ type: 'Resizing', status: 'True' }] })
    expect(Object.keys(ownersOf(storedClaim)['s Apply status'])).toEqual(['f:status'])
  })

  it.sequential('SYS-2 stores nothing with --dry-run=server', async () => {
    await apply(configMapManifest('f', { colour: 'green' }))
    const objectBefore = await getConfigMap('f')
    const out = await apply(configMapManifest('f', { colour: 'red' }), '--dry-run=server')
    expect(out).toBe('configmap/f serverside-applied (server dry run)\n')
    expect(await getConfigMap('f')).toEqual(objectBefore)
  })

  it.sequential('SYS-2 rejects an unknown field with its path', async () => {
    const stdin = `${configMapManifest('g', { colour: 'green' })}shade: dark\n`
    const text = await kubectl.expectError('apply --server-side --validate=false -f -', { stdin })
    expect(text).toContain('.shade: field not declared in schema')
  })

  it.sequential('SYS-2 prints the changes with diff --server-side', async () => {
    await apply(configMapManifest('h', { colour: 'green' }))
    const { out } = await kubectl.run('diff --server-side -f -', {
      stdin: configMapManifest('h', { colour: 'red' }),
      exit: 1,
    })
    expect(out).toMatch(/^-\s+colour: green$/m)
    expect(out).toMatch(/^\+\s+colour: red$/m)
  })

  it.sequential('SYS-2 prints managed fields only on request', async () => {
    await apply(configMapManifest('i', { colour: 'green' }))
    const showFlag = kubectl.minor >= OWNERS_HIDDEN_SINCE ? ' --show-managed-fields' : ''
    expect(await kubectl.out(`get cm i -o yaml${showFlag}`)).toContain('managedFields:')
    if (showFlag) expect(await kubectl.out('get cm i -o yaml')).not.toContain('managedFields:')
  })
})

/** First minor version of kubectl that migrates the owners of client-side apply. */
const OWNERS_MIGRATED_SINCE = 26
/** First minor version of kubectl that prints managed fields only on request. */
const OWNERS_HIDDEN_SINCE = 21
/** First minor version of kubectl that applies to subresources. */
const SUBRESOURCE_SINCE = 32

const configMapManifest = (name: string, data: Record<string, string>) =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}}\ndata: ${JSON.stringify(data)}\n`
const podManifest = (container: string, metadata = '') =>
  `apiVersion: v1\nkind: Pod\nmetadata: {name: p${metadata && `, ${metadata}`}}\nspec: {containers: [${container}]}\n`
const csiNodeManifest = (driver: string) =>
  `apiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: n1}\nspec: {drivers: [${driver}]}\n`
const claimManifest = () =>
  `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: c}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

const ownersOf = ({ metadata: { managedFields = [] } }: any): Record<string, any> =>
  Object.fromEntries(
    managedFields.map(({ manager, operation, subresource, fieldsV1 }: any) => [
      `${manager} ${operation}${subresource ? ` ${subresource}` : ''}`,
      fieldsV1,
    ]),
  )
