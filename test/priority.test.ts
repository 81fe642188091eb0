// Tests priority and preemption as a user runs them: `stowage up` with two nodes, and kubectl.
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { findLeftoversBelow, type HostLeftovers } from './helpers/host-leftovers.ts'
import { findKubectls } from './helpers/kubectls.ts'
import { runStowage } from './helpers/run-stowage.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { createKubectl, type Kubectl } from './kubectl/kubectl.ts'

const kubectlProgram = (await findKubectls()).at(-1)
const kubectlSkip = kubectlProgram || process.env.CI ? undefined : 'kubectl is not installed'
const skipMessage = kubectlSkip ?? skipReason(await probeThisMachine(), ['loop', 'mount', 'xfs', 'ext4'])
const IN_USE = 'ReadWriteOncePod access mode already in-use by another pod'

describe.skipIf(skipMessage)(`a cluster with two nodes${skipMessage ? ` (${skipMessage})` : ''}`, () => {
  let dir: string
  let server: RunningServer
  let kubectl: Kubectl
  let leftovers: HostLeftovers

  beforeAll(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-priority-')))
    leftovers = await findLeftoversBelow(dir)
    server = await startServer({ dataDir: join(dir, 'data'), nodes: 2, flags: ['--pool-size', '1Gi'] })
    kubectl = createKubectl({
      program: kubectlProgram!,
      kubeconfig: server.kubeconfig,
      namespace: 'default',
      home: dir,
    })
    await kubectl.out('wait node --all --for=condition=Ready --timeout=60s')
    await apply(priorityClass('low', 10), priorityClass('middle', 100), priorityClass('high', 1000))
  })
  afterAll(async () => {
    await server?.stop()
    await leftovers?.remove()
    if (dir) await rm(dir, { recursive: true, force: true })
  })

  const apply = (...items: object[]) =>
    kubectl.out('apply -f -', { stdin: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }) })
  const waitUntilRunning = (name: string) =>
    kubectl.out(['wait', `pod/${name}`, '--for=jsonpath={.status.phase}=Running', '--timeout=60s'])
  const waitForMessage = (name: string, text: string) =>
    pollUntil(async () => {
      const { conditions = [] } = (await kubectl.json(`get pod ${name}`)).status
      return conditions.some(({ type, message = '' }: any) => type === 'PodScheduled' && message.includes(text))
    })
  const getNodeName = async (name: string): Promise<string> => (await kubectl.json(`get pod ${name}`)).spec.nodeName
  const listEvents = async (name: string): Promise<string[]> =>
    (await kubectl.json(`get events --field-selector involvedObject.name=${name}`)).items.map(
      ({ reason, message }: any) => `${reason}: ${message}`,
    )
  const runWhy = async (name: string) =>
    (await runStowage('why', `pod/${name}`, '--kubeconfig', server.kubeconfig, '--no-color')).stdout

  it('SYS-27 shows the classes with the Kubernetes columns, by their short name', async () => {
    const [header = '', ...rows] = (await kubectl.out('get pc')).trim().split('\n')
    expect(header.split(/ +/)).toEqual(['NAME', 'VALUE', 'GLOBAL-DEFAULT', 'AGE', 'PREEMPTIONPOLICY'])
    expect(rows.map((row) => row.split(/ +/).slice(0, 3).join(' '))).toEqual([
      'high 1000 false',
      'low 10 false',
      'middle 100 false',
      'system-cluster-critical 2000000000 false',
      'system-node-critical 2000001000 false',
    ])
  })

  it('SYS-27 preempts the pods of the lowest priority, on the node where they are', async () => {
    const { cpu } = (await kubectl.json('get nodes')).items[0].status.allocatable
    await apply(aPod('important', 'middle', { cpu }), aPod('spare', 'low', { cpu }))
    await waitUntilRunning('important')
    await waitUntilRunning('spare')
    const node = await getNodeName('spare')
    await apply(aPod('urgent', 'high', { cpu }))
    await waitUntilRunning('urgent')
    expect(await getNodeName('urgent')).toBe(node)
    const preemptor = (await kubectl.json('get pod urgent')).metadata.uid
    expect(await listEvents('spare')).toContain(`Preempted: Preempted by pod ${preemptor} on node ${node}`)
    expect(await kubectl.out('get pods -o name')).not.toContain('pod/spare')

    await apply(aPod('late', 'low', { cpu }))
    await waitForMessage('late', 'preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.')
    expect(await runWhy('late')).toContain('No preemption victims found for incoming pod')
    await kubectl.out('delete pod --all --timeout=60s')
  })

  it('SYS-27 preempts the user of a ReadWriteOncePod claim only for a pod of higher priority', async () => {
    await apply(aClaim('exclusive'), aPod('first', 'low', { claim: 'exclusive' }))
    await waitUntilRunning('first')
    await apply(aPod('equal', 'low', { claim: 'exclusive' }))
    await waitForMessage('equal', IN_USE)
    await apply(aPod('urgent', 'high', { claim: 'exclusive' }))
    await waitUntilRunning('urgent')
    expect((await listEvents('first')).some((event) => event.startsWith('Preempted: '))).toBe(true)
    expect(await getNodeName('equal')).toBeUndefined()
    await kubectl.out('delete pod urgent --timeout=60s')
    await waitUntilRunning('equal')
    await kubectl.out('delete pod,pvc --all --timeout=60s')
  })

  it('SYS-27 rejects unknown classes, numeric priorities in pods and reserved class names, and creates nothing', async () => {
    const expectRejection = (object: object) => kubectl.expectError('create -f -', { stdin: JSON.stringify(object) })
    expect(await expectRejection(aPod('x', 'none'))).toContain(
      'pods "x" is forbidden: no PriorityClass with name none was found',
    )
    const numbered = aPod('x', 'low')
    expect(await expectRejection({ ...numbered, spec: { ...numbered.spec, priority: 11 } })).toContain(
      'the integer value of priority (11) must not be provided in pod spec; priority admission controller computed 10 from ' +
        'the given PriorityClass name',
    )
    expect(await expectRejection(priorityClass('system-mine', 5))).toContain("names with 'system-' prefix are reserved")
    expect(await kubectl.out('get pods -o name')).toBe('')
  })
})

const priorityClass = (name: string, value: number) => ({
  apiVersion: 'scheduling.k8s.io/v1',
  kind: 'PriorityClass',
  metadata: { name },
  value,
})

const aClaim = (name: string) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name },
  spec: { accessModes: ['ReadWriteOncePod'], resources: { requests: { storage: '320Mi' } } },
})

const aPod = (name: string, priorityClassName: string, { cpu, claim }: { cpu?: string; claim?: string } = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: {
    priorityClassName,
    terminationGracePeriodSeconds: 1,
    containers: [
      {
        name: 'main',
        image: 'none',
        ...(cpu ? { resources: { requests: { cpu } } } : {}),
        ...(claim ? { volumeMounts: [{ name: 'data', mountPath: '/data' }] } : {}),
      },
    ],
    ...(claim ? { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: claim } }] } : {}),
  },
})

async function pollUntil(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 100))
}
