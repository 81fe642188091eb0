// Runs the commands of docs/how-to/simulate.md, `stowage simulate` and `stowage capacity templates`, on a server. Their output
// must equal that of the page (SIMULATE_PAGE=write updates the page). Other tests pass invalid files and flags to `stowage
// simulate`.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Kind, KubeObject } from '../../../api/kind.ts'
import { csiDriverKind } from '../../../api/kinds/csi-driver/csi-driver.ts'
import { csiNodeKind } from '../../../api/kinds/csi-node/csi-node.ts'
import { csiStorageCapacityKind } from '../../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { namespaceKind } from '../../../api/kinds/namespace/namespace.ts'
import { nodeKind } from '../../../api/kinds/node/node.ts'
import { podKind } from '../../../api/kinds/pod/pod.ts'
import { storageClassKind } from '../../../api/kinds/storage-class/storage-class.ts'
import { systemClock } from '../../../base/clock.ts'
import type { Client } from '../../../client/index.ts'
import { startProgramFixture } from '../../program.fixture.ts'
import { runCommandLine } from '../../run.ts'

const PAGE = new URL('../../../../docs/how-to/simulate.md', import.meta.url)
const DRIVER = 'pools.example.com'
const TOPOLOGY = 'topology.pools.example.com/node'
const POD = podText()

async function startCluster() {
  const fixture = await startProgramFixture()
  await createCluster(fixture.client)
  const run = async (...args: readonly string[]) => {
    let stdout = ''
    let stderr = ''
    const code = await runCommandLine(['node', 'stowage', ...args, '--kubeconfig', fixture.kubeconfig], {
      clock: systemClock(),
      random: () => 0,
      signal: fixture.signal,
      write(text) {
        stdout += text
      },
      writeError(text) {
        stderr += text
      },
    })
    return { code, stdout, stderr }
  }
  return {
    ...fixture,
    run,
    async write(name: string, text: string): Promise<string> {
      const path = join(fixture.dir, name)
      await writeFile(path, text)
      return path
    },
  }
}

async function createCluster(client: Client): Promise<void> {
  const create = <T extends KubeObject>(kind: Kind<T>, object: object) => client.create(kind, object as T)
  await create(namespaceKind, { metadata: { name: 'shop' } })
  await create(csiDriverKind, { metadata: { name: DRIVER }, spec: { storageCapacity: true } })
  await create(storageClassKind, {
    metadata: { name: 'local' },
    provisioner: DRIVER,
    volumeBindingMode: 'WaitForFirstConsumer',
  })
  for (const name of ['node-1', 'node-2', 'node-3']) {
    const labels = { 'kubernetes.io/hostname': name, [TOPOLOGY]: name }
    await create(nodeKind, {
      metadata: { name, labels },
      status: { allocatable: { cpu: '4', memory: '16Gi', pods: '20' } },
    })
    await create(csiNodeKind, {
      metadata: { name },
      spec: { drivers: [{ name: DRIVER, nodeID: name, topologyKeys: [TOPOLOGY] }] },
    })
    await create(csiStorageCapacityKind, {
      metadata: { namespace: 'kube-system', name: `local-${name}` },
      storageClassName: 'local',
      nodeTopology: { matchLabels: { [TOPOLOGY]: name } },
      capacity: '10Gi',
    })
  }
  const container = { name: 'cache', image: 'cache', resources: { requests: { cpu: '2' } } }
  await create(podKind, {
    metadata: { namespace: 'shop', name: 'cache' },
    spec: { nodeName: 'node-1', containers: [container] },
  })
}

/** The age of a capacity report differs from run to run. */
const maskAges = (text: string): string => text.replace(/reported \d+ (s|min|h|d) ago/g, 'reported 12 s ago')

describe('stowage simulate', () => {
  it('PLUS-2 PLUS-17 prints the output that the page shows, and simulate writes nothing', {
    timeout: 60_000,
  }, async () => {
    const { run, write, api } = await startCluster()
    const page = await readFile(PAGE, 'utf8')
    const files = [...page.matchAll(/```yaml\n# (\S+)\n([^`]*)```/g)]
    const paths = new Map<string, string>()
    for (const [, name, text] of files) paths.set(name!, await write(name!, text!))
    let revision = api.store.revision
    let written = page
    for (const [block, text] of page.matchAll(/```console\n([^`]*)```/g)) {
      const commands = text!.split('\n').filter((line) => line.startsWith('$ '))
      let output = ''
      for (const command of commands) {
        const args = command.split(' ').slice(2)
        const { code, stdout, stderr } = await run(...args.map((arg) => paths.get(arg) ?? arg))
        expect(stderr, command).toBe('')
        expect(code, command).toBeLessThan(2)
        if (args[0] === 'simulate') expect(api.store.revision, command).toBe(revision)
        revision = api.store.revision
        output += `${command}\n${maskAges(stdout)}`
      }
      written = written.replace(block, () => `\`\`\`console\n${output}\`\`\``)
    }
    if (process.env.SIMULATE_PAGE === 'write') await writeFile(PAGE, written)
    else expect(written).toBe(page)
  })

  it('PLUS-2 exits with 0 if everything fits, and prints the result as JSON and YAML', async () => {
    const { run, write } = await startCluster()
    const file = await write('pod.yaml', POD)
    const { code, stdout } = await run('simulate', '-f', file, '-o', 'json')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ fits: true, placed: [{ namespace: 'default', name: 'web' }] })
    expect((await run('simulate', '-f', file, '-o', 'yaml', '-n', 'shop')).stdout).toMatch(/^fits: true$/m)
  })

  it.each([
    ['no pods', 'apiVersion: v1\nkind: Secret\nmetadata: { name: s }\n', ': no pods: expected a Pod, or a Deployment'],
    ['invalid YAML', `${podText()}---\na: [\n`, ', document 2: invalid YAML: '],
    ['no kind', 'metadata: { name: a }\n', ', document 1: the object has no apiVersion or no kind'],
    ['an unknown field', podText('  hostnam: a\n'), ', document 1: Pod has no field "spec.hostnam"'],
    ['a wrong type', podText('  priority: high\n'), ', document 1: '],
    [
      'an invalid pod',
      'apiVersion: v1\nkind: Pod\nmetadata: { name: web }\nspec: { containers: [] }\n',
      ', document 1: the server would reject Pod "web": spec.containers: Required value',
    ],
    [
      'another version',
      podText().replace('apiVersion: v1', 'apiVersion: v2'),
      ', document 1: Pod has the apiVersion v1, not v2',
    ],
    ['the same pod twice', `${podText()}---\n${podText()}`, ', document 2: Pod default/web is already in '],
  ])('PLUS-2 exits with 2 and names the document if the file has %s', async (_, text, message) => {
    const { run, write } = await startCluster()
    const file = await write('bad.yaml', text)
    const { code, stderr } = await run('simulate', '-f', file)
    expect(stderr).toContain(`${file}${message}`)
    expect(code).toBe(2)
  })

  it('PLUS-2 exits with 2 and names the document if a node group has a second Node or CSINode', async () => {
    const { run, write } = await startCluster()
    const pods = await write('pod.yaml', POD)
    const node = (name: string) => `{apiVersion: v1, kind: Node, metadata: {name: ${name}}}`
    const csiNode = (name: string) => `{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: ${name}}}`
    for (const [documents, message] of [
      [[node('a'), node('b')], ', document 2: a node group has one Node, and this is the second'],
      [
        [node('a'), csiNode('a'), csiNode('b')],
        ', document 3: a node group has at most one CSINode, and this is the second',
      ],
    ] as const) {
      const group = await write('group.yaml', documents.join('\n---\n'))
      const { code, stderr } = await run('simulate', '-f', pods, '--node-group', group, '--add-nodes', '1')
      expect(stderr).toContain(`${group}${message}`)
      expect(code).toBe(2)
    }
  })

  it.each([
    [['--drain', 'node-9'], 'The node node-9 does not exist. Similar names: node-1, node-2, node-3.'],
    [['-f', 'FILE', '--like', 'nod-1'], 'The node nod-1 does not exist. Similar names: node-1'],
    [['-f', 'FILE', '--add-nodes', '2'], '--add-nodes needs --like NODE or --node-group FILE.'],
    [['-f', 'FILE', '--add-nodes', 'two'], '--add-nodes "two": expected a whole number'],
    [
      ['-f', 'FILE', '--node-group', 'FILE'],
      'document 1: a node group consists of Node, CSINode and CSIStorageCapacity objects, not Pod',
    ],
    [['-f', 'FILE', '--quota', 'FILE'], 'document 1: --quota expects ResourceQuota, not Pod'],
    [['-f', '/nonexistent'], '/nonexistent cannot be read'],
    [[], 'Nothing to place: set --filename, --drain, --remove-node or --pending.'],
  ])('PLUS-2 exits with 2 for the flags %j', async (flags, message) => {
    const { run, write } = await startCluster()
    const file = await write('pod.yaml', POD)
    const { code, stderr } = await run('simulate', ...flags.map((flag) => (flag === 'FILE' ? file : flag)))
    expect(stderr).toContain(message)
    expect(code).toBe(2)
  })
})

function podText(spec = ''): string {
  return `apiVersion: v1\nkind: Pod\nmetadata: { name: web }\nspec:\n  containers: [{ name: app, image: app }]\n${spec}`
}
