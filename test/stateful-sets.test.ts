// Tests stateful sets as a user runs them: `stowage up` with three nodes, volumes and kubectl.
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { findKubectls } from './helpers/kubectls.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { createKubectl, type Kubectl } from './kubectl/kubectl.ts'
import { statefulSetSteps } from './kubectl/stateful-sets.ts'

const kubectls = await findKubectls()
const kubectlProgram = kubectls.at(-1)
const kubectlSkip = kubectlProgram || process.env.CI ? undefined : 'kubectl is not installed'
const skipMessage = kubectlSkip ?? skipReason(await probeThisMachine(), ['loop', 'mount', 'xfs', 'ext4'])
const WAIT_OPTIONS = { timeout: 60_000, interval: 50 }

describe.skipIf(skipMessage)(`stateful sets${skipMessage ? ` (${skipMessage})` : ''}`, { timeout: 180_000 }, () => {
  let dir: string
  let server: RunningServer
  let kubectl: Kubectl

  async function start(): Promise<void> {
    server = await startServer({ dataDir: join(dir, 'data'), nodes: 3, flags: ['--pool-size', '2Gi'] })
    kubectl = createKubectl({
      program: kubectlProgram!,
      kubeconfig: server.kubeconfig,
      namespace: 'default',
      home: dir,
    })
  }
  beforeAll(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-sets-')))
    await mkdir(join(dir, 'data'))
    await start()
  }, 120_000)
  afterAll(async () => {
    await kubectl?.out('delete sts,pod,pvc --all --timeout=60s')
    await vi.waitFor(async () => expect((await kubectl.json('get pv')).items).toEqual([]), WAIT_OPTIONS)
    await server?.stop()
    await rm(dir, { recursive: true, force: true })
  }, 120_000)

  const applySet = (name: string, spec: object = {}) =>
    kubectl.out('apply -f -', {
      stdin: JSON.stringify({
        apiVersion: 'apps/v1',
        kind: 'StatefulSet',
        metadata: { name },
        spec: {
          replicas: 3,
          selector: { matchLabels: { app: name } },
          template: {
            metadata: { labels: { app: name } },
            spec: {
              terminationGracePeriodSeconds: 0,
              containers: [{ name: 'main', image: 'v1', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
            },
          },
          volumeClaimTemplates: [
            {
              metadata: { name: 'data' },
              spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '100Mi' } } },
            },
          ],
          ...spec,
        },
      }),
    })
  const patchSet = (name: string, patch: object) => kubectl.out(['patch', 'sts', name, '-p', JSON.stringify(patch)])
  const waitForRollout = (name: string) => kubectl.out(`rollout status sts/${name} --timeout=90s`)
  const waitForReplicas = (name: string, count: number) =>
    kubectl.out(['wait', `sts/${name}`, `--for=jsonpath={.status.replicas}=${count}`, '--timeout=90s'])
  const listPods = async (name: string): Promise<any[]> => (await kubectl.json(`get pods -l app=${name}`)).items
  const listImages = async (name: string) => (await listPods(name)).map(({ spec }) => spec.containers[0].image)
  const getClaimUids = async (name: string): Promise<Record<string, string>> =>
    Object.fromEntries(
      (await kubectl.json(`get pvc -l app=${name}`)).items.map(({ metadata }: any) => [metadata.name, metadata.uid]),
    )
  const imagePatch = (value: string, selector: object = {}) => ({
    spec: { template: { spec: { containers: [{ name: 'main', image: value }], ...selector } } },
  })

  it('SYS-27 keep names and claims through scaling, a crash of the server, and updates with a partition', async () => {
    await applySet('web')
    await waitForRollout('web')
    const claims = await getClaimUids('web')
    expect(Object.keys(claims)).toEqual(['data-web-0', 'data-web-1', 'data-web-2'])
    const created = (await listPods('web')).map(({ metadata }) => metadata.creationTimestamp)
    expect(created).toEqual(created.toSorted())

    await kubectl.out('scale sts/web --replicas=1')
    await waitForReplicas('web', 1)
    expect((await listPods('web')).map(({ metadata }) => metadata.name)).toEqual(['web-0'])
    await kubectl.out('scale sts/web --replicas=3')
    await server.kill()
    await start()
    await waitForRollout('web')
    expect(await getClaimUids('web')).toEqual(claims)

    const partition = (value: number) => ({ spec: { updateStrategy: { rollingUpdate: { partition: value } } } })
    await patchSet('web', partition(2))
    await patchSet('web', imagePatch('v2'))
    await waitForRollout('web')
    expect(await listImages('web')).toEqual(['v1', 'v1', 'v2'])
    await patchSet('web', partition(0))
    await vi.waitFor(async () => expect(await listImages('web')).toEqual(['v2', 'v2', 'v2']), WAIT_OPTIONS)
    await waitForRollout('web')
    expect(await getClaimUids('web')).toEqual(claims)
  })

  it('SYS-27 wait for the pod of a broken rollout until the user deletes it, after the template is reverted', async () => {
    await patchSet('web', imagePatch('broken', { nodeSelector: { nowhere: 'true' } }))
    await vi.waitFor(async () => expect(await listImages('web')).toEqual(['v2', 'v2', 'broken']), WAIT_OPTIONS)
    await patchSet('web', imagePatch('v2', { nodeSelector: null }))
    const { generation } = (await kubectl.json('get sts web')).metadata
    await kubectl.out(['wait', 'sts/web', `--for=jsonpath={.status.observedGeneration}=${generation}`, '--timeout=60s'])
    expect(await listImages('web')).toEqual(['v2', 'v2', 'broken'])
    const brokenPod = await kubectl.json('get pod web-2')
    expect(brokenPod.status.phase).toBe('Pending')
    await kubectl.out('delete pod web-2')
    await waitForRollout('web')
    expect(await listImages('web')).toEqual(['v2', 'v2', 'v2'])
  })

  it('SYS-27 delete the claims of scaled-down pods with whenScaled Delete, and none if the set is orphaned', async () => {
    await applySet('db', {
      podManagementPolicy: 'Parallel',
      persistentVolumeClaimRetentionPolicy: { whenScaled: 'Delete', whenDeleted: 'Delete' },
    })
    await waitForRollout('db')
    const claims = await getClaimUids('db')
    await kubectl.out('scale sts/db --replicas=1')
    await vi.waitFor(async () => expect(Object.keys(await getClaimUids('db'))).toEqual(['data-db-0']), WAIT_OPTIONS)
    await kubectl.out('scale sts/db --replicas=2')
    await waitForRollout('db')
    const claimsAfterwards = await getClaimUids('db')
    expect(claimsAfterwards['data-db-0']).toBe(claims['data-db-0'])
    expect(claimsAfterwards['data-db-1']).not.toBe(claims['data-db-1'])

    await kubectl.out('delete sts db --cascade=orphan')
    expect(await getClaimUids('db')).toEqual(claimsAfterwards)
    for (const item of (await kubectl.json('get pods,pvc -l app=db')).items)
      expect(item.metadata.ownerReferences).toBeUndefined()

    await applySet('db', { persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete' }, replicas: 2 })
    await waitForRollout('db')
    expect(await getClaimUids('db')).toEqual(claimsAfterwards)
    await kubectl.out('delete sts db')
    await vi.waitFor(async () => expect(await getClaimUids('db')).toEqual({}), WAIT_OPTIONS)
  })

  it.each(kubectls)('SYS-2 SYS-27 work with each command of kubectl $version', async (program) => {
    const options = { program, kubeconfig: server.kubeconfig, namespace: 'default', home: dir }
    for (const { run } of statefulSetSteps) await run({ kubectl: createKubectl(options) })
  })
})
