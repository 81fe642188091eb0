// kubectl apply --server-side with every kubectl on this machine: field ownership, conflicts and transfers. Each kubectl has
// its own server; each test has its own object.
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
  const read = async (what: string) => (await server.call('GET', what)).json
  const mapOf = (name: string) => read(`/api/v1/namespaces/default/configmaps/${name}`)

  it.sequential('SYS-2 creates, repeats, changes, and removes fields that left the file', async () => {
    expect(await apply(settings('a', { colour: 'green', size: 'large' }))).toBe('configmap/a serverside-applied\n')
    const before = await mapOf('a')
    expect(before.data).toEqual({ colour: 'green', size: 'large' })
    await apply(settings('a', { colour: 'green', size: 'large' }))
    expect(await mapOf('a')).toEqual(before)
    await apply(settings('a', { colour: 'blue' }))
    expect((await mapOf('a')).data).toEqual({ colour: 'blue' })
    expect(ownersOf(await mapOf('a'))).toEqual({ 'kubectl Apply': { 'f:data': { 'f:colour': {} } } })
  })

  it.sequential('SYS-2 two managers share an object, and each removes only its own', async () => {
    await apply(settings('b', { mine: '1' }), '--field-manager=first')
    await apply(settings('b', { yours: '1' }), '--field-manager=second')
    await apply(settings('b', {}), '--field-manager=first')
    expect((await mapOf('b')).data).toEqual({ yours: '1' })
  })

  it.sequential('SYS-2 a conflict exits with 1 and names manager and field, unless it is forced', async () => {
    await apply(settings('c', { colour: 'green' }), '--field-manager=first')
    const stdin = settings('c', { colour: 'red' })
    const text = await kubectl.expectError('apply --server-side --field-manager=second -f -', { stdin })
    expect(text).toContain('Apply failed with 1 conflict: conflict with "first": .data.colour')
    expect(text).toContain('--force-conflicts')
    await apply(stdin, '--field-manager=second --force-conflicts')
    expect((await mapOf('c')).data).toEqual({ colour: 'red' })
    expect(ownersOf(await mapOf('c'))).toEqual({ 'second Apply': { 'f:data': { 'f:colour': {} } } })
  })

  it.sequential('SYS-2 fields set by other commands belong to those commands', async () => {
    await apply(settings('d', { colour: 'green' }))
    await kubectl.out('label cm d team=red')
    await kubectl.out(['patch', 'cm', 'd', '--type=merge', '-p', '{"data":{"size":"large"}}'])
    const text = await kubectl.expectError('apply --server-side -f -', { stdin: settings('d', { size: 'small' }) })
    expect(text).toMatch(/conflict with "kubectl-patch" using v1: \.data\.size/)
    await apply(settings('d', {}))
    const { data, metadata } = await mapOf('d')
    expect({ data, labels: metadata.labels }).toEqual({ data: { size: 'large' }, labels: { team: 'red' } })
  })

  it.sequential('SYS-2 takes over an object of client-side apply without a conflict', async () => {
    await kubectl.out('apply -f -', { stdin: settings('e', { colour: 'green', size: 'large' }) })
    await apply(settings('e', { colour: 'blue', size: 'large' }))
    expect((await mapOf('e')).data).toEqual({ colour: 'blue', size: 'large' })
    await apply(settings('e', { colour: 'blue' }))
    const { data, metadata } = await mapOf('e')
    expect(data.colour).toBe('blue')
    const managers = metadata.managedFields.map(({ manager, operation }: any) => `${manager} ${operation}`)
    expect(managers).toContain('kubectl Apply')
    if (kubectl.minor >= MIGRATES_SINCE) {
      expect(managers).not.toContain('kubectl-client-side-apply Update')
      expect(data).toEqual({ colour: 'blue' })
    }
  })

  it.sequential('SYS-2 list items belong to the manager that set them: containers, variables, ports', async () => {
    const ports = 'ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]'
    await apply(pod(`{name: web, image: web:1, env: [{name: A, value: "1"}, {name: B, value: "2"}], ${ports}}`))
    await apply(pod('{name: web, image: web:1}', 'labels: {seen: yes-really}'), '--field-manager=other')
    const stored = await read('/api/v1/namespaces/default/pods/p')
    expect(
      Object.keys(ownersOf(stored)['kubectl Apply']['f:spec']['f:containers']['k:{"name":"web"}']['f:ports']),
    ).toEqual(['k:{"containerPort":80,"protocol":"TCP"}', 'k:{"containerPort":80,"protocol":"UDP"}'])
    const stdin = pod('{name: web, image: web:2}')
    const text = await kubectl.expectError('apply --server-side --field-manager=third -f -', { stdin })
    expect(text).toContain('.spec.containers[name="web"].image')
  })

  it.sequential('SYS-2 each driver of a CSINode has its own owner', async () => {
    await kubectl.out('apply -f -', { stdin: 'apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n' })
    await apply(csiNode('{name: a.example, nodeID: id-a, topologyKeys: [zone]}'), '--field-manager=a')
    await apply(csiNode('{name: b.example, nodeID: id-b, topologyKeys: []}'), '--field-manager=b')
    const { spec } = await read('/apis/storage.k8s.io/v1/csinodes/n1')
    expect(spec.drivers.map(({ name, nodeID }: any) => [name, nodeID])).toEqual([
      ['a.example', 'id-a'],
      ['b.example', 'id-b'],
    ])
    await apply(
      'apiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: n1}\nspec: {drivers: []}\n',
      '--field-manager=a',
    )
    const left = await read('/apis/storage.k8s.io/v1/csinodes/n1')
    expect(left.spec.drivers.map(({ name }: any) => name)).toEqual(['b.example'])
  })

  it.sequential('SYS-2 applies conditions through the status of a claim', async () => {
    await apply(claim())
    if (kubectl.minor < STATUS_SINCE) return // has no apply --subresource
    await apply(
      `${claim()}status: {conditions: [{type: Resizing, status: "True"}]}\n`,
      '--subresource=status --field-manager=s',
    )
    const stored = await read('/api/v1/namespaces/default/persistentvolumeclaims/c')
    expect(stored.status).toMatchObject({ conditions: [{ type: 'Resizing', status: 'True' }] })
    expect(Object.keys(ownersOf(stored)['s Apply status'])).toEqual(['f:status'])
  })

  it.sequential('SYS-2 --dry-run=server answers and stores nothing', async () => {
    await apply(settings('f', { colour: 'green' }))
    const before = await mapOf('f')
    const out = await apply(settings('f', { colour: 'red' }), '--dry-run=server')
    expect(out).toBe('configmap/f serverside-applied (server dry run)\n')
    expect(await mapOf('f')).toEqual(before)
  })

  it.sequential('SYS-2 rejects an unknown field by name', async () => {
    const stdin = `${settings('g', { colour: 'green' })}shade: dark\n`
    const text = await kubectl.expectError('apply --server-side --validate=false -f -', { stdin })
    expect(text).toContain('.shade: field not declared in schema')
  })

  it.sequential('SYS-2 diff --server-side shows the changes of an apply', async () => {
    await apply(settings('h', { colour: 'green' }))
    const { out } = await kubectl.run('diff --server-side -f -', { stdin: settings('h', { colour: 'red' }), exit: 1 })
    expect(out).toMatch(/^-\s+colour: green$/m)
    expect(out).toMatch(/^\+\s+colour: red$/m)
  })

  it.sequential('SYS-2 shows managed fields only on request', async () => {
    await apply(settings('i', { colour: 'green' }))
    const asks = kubectl.minor >= HIDES_OWNERS_SINCE ? ' --show-managed-fields' : ''
    expect(await kubectl.out(`get cm i -o yaml${asks}`)).toContain('managedFields:')
    if (asks) expect(await kubectl.out('get cm i -o yaml')).not.toContain('managedFields:')
  })
})

/** From this minor version on kubectl migrates the owners of client-side apply. */
const MIGRATES_SINCE = 26
/** From this minor version on kubectl shows managed fields only on request. */
const HIDES_OWNERS_SINCE = 21
/** From this minor version on kubectl applies to subresources. */
const STATUS_SINCE = 32

const settings = (name: string, data: Record<string, string>) =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}}\ndata: ${JSON.stringify(data)}\n`
const pod = (container: string, metadata = '') =>
  `apiVersion: v1\nkind: Pod\nmetadata: {name: p${metadata && `, ${metadata}`}}\nspec: {containers: [${container}]}\n`
const csiNode = (driver: string) =>
  `apiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: n1}\nspec: {drivers: [${driver}]}\n`
const claim = () =>
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
