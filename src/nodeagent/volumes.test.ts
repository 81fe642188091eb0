// Tests of the agent for attached and expanded volumes, volumes without a CSI driver, waiting pods and stats.
import { describe, expect, it } from 'vitest'
import { nodeKind } from '../api/kinds/node/node.ts'
import type { Client } from '../client/index.ts'
import { attachmentNameOf } from '../volumes/attachment-names.ts'
import { CLAIMS, createAgentFixture, DRIVER, NODE, PODS, ROOT, VOLUMES } from './agent.fixture.ts'

const ATTACHMENTS = '/apis/storage.k8s.io/v1/volumeattachments'

describe('an attached volume', () => {
  const handleOf = (fixture: Awaited<ReturnType<typeof createAgentFixture>>) =>
    Object.keys(fixture.fake.state.volumes)[0]!

  for (const csiDriver of [{ attachRequired: true }, null]) {
    const condition = csiDriver ? 'with attachRequired' : 'without a CSIDriver'
    it(`SYS-18 SYS-7 is staged with its publish context after it is attached, ${condition}`, async () => {
      const fixture = await createAgentFixture({ csiDriver })
      await fixture.createVolume('orders')
      await fixture.createPod('shop', ['orders'])
      const name = attachmentNameOf({ driver: DRIVER, handle: handleOf(fixture), nodeName: NODE })
      await fixture.waitUntil(
        async () => JSON.stringify((await fixture.pod('shop')).status).includes(`VolumeAttachment ${name}`),
        'the reason in the pod status',
      )
      expect(fixture.calls()).toEqual([])
      await fixture.server.post(ATTACHMENTS, {
        metadata: { name },
        spec: { attacher: DRIVER, nodeName: NODE, source: { persistentVolumeName: 'pv-orders' } },
      })
      const status = { attached: true, attachmentMetadata: { device: '/dev/x' } }
      await fixture.server.patch(`${ATTACHMENTS}/${name}/status`, { status })
      await fixture.untilRunning('shop')
      for (const method of ['NodeStageVolume', 'NodePublishVolume']) {
        const call = fixture.fake.record.calls.find((candidate) => candidate.method === method)
        expect(call?.request).toMatchObject({ publishContext: { device: '/dev/x' } })
      }
      const inUse = async () => (await fixture.server.get(`/api/v1/nodes/${NODE}`)).json.status.volumesInUse ?? []
      expect(await inUse()).toEqual([`kubernetes.io/csi/${DRIVER}^${handleOf(fixture)}`])
      await fixture.server.delete(`${PODS}/shop`)
      await fixture.untilDeleted('shop')
      expect(await inUse()).toEqual([])
    })
  }

  it('SYS-18 is reported as in use before it is staged', async () => {
    const fixture = await createAgentFixture({ csiDriver: { attachRequired: true } })
    await fixture.createVolume('orders')
    const name = attachmentNameOf({ driver: DRIVER, handle: handleOf(fixture), nodeName: NODE })
    await fixture.server.post(ATTACHMENTS, {
      metadata: { name },
      spec: { attacher: DRIVER, nodeName: NODE, source: { persistentVolumeName: 'pv-orders' } },
    })
    await fixture.server.patch(`${ATTACHMENTS}/${name}/status`, { status: { attached: true } })
    fixture.setRules([{ method: 'NodeStageVolume', times: 1, effect: { do: 'hang' } }])
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntil(() => fixture.fake.script.hanging === 1, 'the driver to hang')
    expect((await fixture.server.get(`/api/v1/nodes/${NODE}`)).json.status.volumesInUse).toHaveLength(1)
    fixture.fake.script.release()
    await fixture.untilRunning('shop')
  })

  it('SYS-18 is not staged if it is detached just before the report', async () => {
    let detach: (() => Promise<unknown>) | undefined
    const wrapClient = (client: Client): Client => ({
      ...client,
      async patch(kind: any, ref: any, patch: any, options: any) {
        const isReport = kind === nodeKind && (patch.body.status?.volumesInUse ?? []).length > 0
        if (isReport) await detach?.()
        return client.patch(kind, ref, patch, options) as any
      },
    })
    const fixture = await createAgentFixture({ csiDriver: { attachRequired: true }, wrapClient })
    await fixture.createVolume('orders')
    const name = attachmentNameOf({ driver: DRIVER, handle: handleOf(fixture), nodeName: NODE })
    const attach = async () => {
      const source = { persistentVolumeName: 'pv-orders' }
      await fixture.server.post(ATTACHMENTS, { metadata: { name }, spec: { attacher: DRIVER, nodeName: NODE, source } })
      await fixture.server.patch(`${ATTACHMENTS}/${name}/status`, { status: { attached: true } })
    }
    detach = async () => {
      detach = undefined
      await fixture.server.delete(`${ATTACHMENTS}/${name}`)
    }
    await attach()
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntil(() => detach === undefined, 'the volume to be detached')
    await fixture.untilIdle()
    expect(fixture.calls()).toEqual([])
    expect(await fixture.phase('shop')).toBe('Pending')
    await attach()
    await fixture.untilRunning('shop')
    expect(fixture.calls()).toEqual(['NodeStageVolume', 'NodePublishVolume'])
  })

  it('SYS-18 is staged only if it is in volumesAttached on a server without atomic commits', async () => {
    const wrapClient = (client: Client): Client => ({ ...client, commitsAtomically: async () => false })
    const fixture = await createAgentFixture({ csiDriver: { attachRequired: true }, wrapClient })
    await fixture.createVolume('orders')
    const name = attachmentNameOf({ driver: DRIVER, handle: handleOf(fixture), nodeName: NODE })
    const source = { persistentVolumeName: 'pv-orders' }
    await fixture.server.post(ATTACHMENTS, { metadata: { name }, spec: { attacher: DRIVER, nodeName: NODE, source } })
    await fixture.server.patch(`${ATTACHMENTS}/${name}/status`, { status: { attached: true } })
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntil(
      async () => JSON.stringify((await fixture.pod('shop')).status).includes('attached volumes of node'),
      'the reason in the pod status',
    )
    expect(fixture.calls()).toEqual([])
    const volumesAttached = [{ name: `kubernetes.io/csi/${DRIVER}^${handleOf(fixture)}`, devicePath: '' }]
    await fixture.server.patch(`/api/v1/nodes/${NODE}/status`, { status: { volumesAttached } })
    await fixture.untilRunning('shop')
  })

  it('SYS-18 is in the first status that the agent writes after a restart', async () => {
    const reports: string[][] = []
    const wrapClient = (client: Client): Client => ({
      ...client,
      async patch(kind: any, ref: any, patch: any, options: any) {
        if (kind === nodeKind && patch.body.status) reports.push(patch.body.status.volumesInUse ?? [])
        return client.patch(kind, ref, patch, options) as any
      },
      async create(kind: any, object: any, options: any) {
        if (kind === nodeKind) reports.push(object.status.volumesInUse ?? [])
        return client.create(kind, object, options) as any
      },
    })
    const fixture = await createAgentFixture({ csiDriver: { attachRequired: true }, wrapClient })
    await fixture.createVolume('orders')
    const name = attachmentNameOf({ driver: DRIVER, handle: handleOf(fixture), nodeName: NODE })
    const source = { persistentVolumeName: 'pv-orders' }
    await fixture.server.post(ATTACHMENTS, { metadata: { name }, spec: { attacher: DRIVER, nodeName: NODE, source } })
    await fixture.server.patch(`${ATTACHMENTS}/${name}/status`, { status: { attached: true } })
    await fixture.createPod('shop', ['orders'])
    await fixture.untilRunning('shop')

    const expectedNames = [`kubernetes.io/csi/${DRIVER}^${handleOf(fixture)}`]
    for (const isNodeDeleted of [false, true]) {
      fixture.kill()
      if (isNodeDeleted) await fixture.server.delete(`/api/v1/nodes/${NODE}`)
      reports.length = 0
      fixture.start()
      await fixture.waitUntil(() => reports.length > (isNodeDeleted ? 1 : 0), 'the node to report')
      await fixture.untilIdle()
      expect(reports).toEqual(reports.map(() => expectedNames))
    }
    await fixture.server.delete(`${PODS}/shop`)
    await fixture.untilDeleted('shop')
    expect((await fixture.server.get(`/api/v1/nodes/${NODE}`)).json.status.volumesInUse).toBeUndefined()
  })

  it('SYS-18 stays in volumesInUse if an earlier report is delayed', async () => {
    let delayedReport: (() => Promise<unknown>) | undefined
    const wrapClient = (client: Client): Client => ({
      ...client,
      async patch(kind: any, ref: any, patch: any, options: any) {
        const isReport = kind === nodeKind && patch.body.status && !delayedReport
        if (isReport) delayedReport = () => client.patch(kind, ref, patch, options) as any
        return client.patch(kind, ref, patch, options) as any
      },
    })
    const fixture = await createAgentFixture({ csiDriver: { attachRequired: true }, wrapClient })
    await fixture.createVolume('orders')
    const name = attachmentNameOf({ driver: DRIVER, handle: handleOf(fixture), nodeName: NODE })
    const source = { persistentVolumeName: 'pv-orders' }
    await fixture.server.post(ATTACHMENTS, { metadata: { name }, spec: { attacher: DRIVER, nodeName: NODE, source } })
    await fixture.server.patch(`${ATTACHMENTS}/${name}/status`, { status: { attached: true } })
    await fixture.createPod('shop', ['orders'])
    await fixture.untilRunning('shop')
    await expect(delayedReport?.()).rejects.toMatchObject({ code: 409 })
    expect((await fixture.server.get(`/api/v1/nodes/${NODE}`)).json.status.volumesInUse).toHaveLength(1)
  })

  it('SYS-18 has its attach error in an event of the pod', async () => {
    const fixture = await createAgentFixture({ csiDriver: { attachRequired: true } })
    await fixture.createVolume('orders')
    const name = attachmentNameOf({ driver: DRIVER, handle: handleOf(fixture), nodeName: NODE })
    await fixture.server.post(ATTACHMENTS, {
      metadata: { name },
      spec: { attacher: DRIVER, nodeName: NODE, source: { persistentVolumeName: 'pv-orders' } },
    })
    const attachError = { message: 'the storage array is unavailable', time: '2026-01-01T00:00:00Z' }
    await fixture.server.patch(`${ATTACHMENTS}/${name}/status`, { status: { attached: false, attachError } })
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntil(async () => (await fixture.events('shop')).length > 0, 'an event')
    expect((await fixture.events('shop'))[0]).toBe(
      'FailedAttachVolume: AttachVolume.Attach failed for volume "pv-orders" : the storage array is unavailable',
    )
  })
})

describe('an expanded volume', () => {
  const pending = {
    allocatedResources: { storage: '2Gi' },
    allocatedResourceStatuses: { storage: 'NodeResizePending' },
  }

  it('SYS-7 is expanded while it is mounted, and the claim is updated', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders')
    await fixture.createPod('shop', ['orders'])
    await fixture.untilRunning('shop')
    fixture.calls()
    for (const volume of Object.values(fixture.fake.state.volumes)) volume.capacityBytes = 2 * 1024 ** 3
    await fixture.server.patch(`${VOLUMES}/pv-orders`, { spec: { capacity: { storage: '2Gi' } } }, 'merge')
    await fixture.server.patch(`${CLAIMS}/orders/status`, { status: pending }, 'merge')
    const claimStatus = async () => (await fixture.server.get(`${CLAIMS}/orders`)).json.status
    await fixture.waitUntil(
      async () => (await claimStatus()).capacity.storage === '2Gi',
      'the new capacity of the claim',
    )
    expect(fixture.calls()).toEqual(['NodeExpandVolume'])
    expect((await claimStatus()).allocatedResourceStatuses).toBeUndefined()
    expect(await fixture.events('shop')).toContainEqual(expect.stringMatching(/^FileSystemResizeSuccessful: /))
  })

  it('SYS-7 is not expanded again after the driver rejected it as in use, and the pod runs', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders', { pv: { capacity: { storage: '2Gi' } }, claimStatus: pending })
    fixture.setRules([{ method: 'NodeExpandVolume', effect: { do: 'fail', code: 'FAILED_PRECONDITION' } }])
    await fixture.createPod('shop', ['orders'])
    await fixture.untilRunning('shop')
    await fixture.server.patch(`${PODS}/shop`, { metadata: { labels: { look: 'again' } } }, 'merge')
    await fixture.untilIdle()
    expect(fixture.calls().filter((call) => call === 'NodeExpandVolume')).toHaveLength(1)
    expect(await fixture.events('shop')).toContainEqual(expect.stringMatching(/^VolumeResizeFailed: /))
  })
})

describe('a volume without a CSI driver', () => {
  const podFields = (volumes: object[], mounts: object[]) => ({
    spec: { volumes },
    container: { volumeMounts: mounts },
  })

  it('SYS-7 is removed with its pod if it is an emptyDir', async () => {
    const fixture = await createAgentFixture()
    const uid = await fixture.createPod(
      'shop',
      [],
      podFields(
        [
          { name: 'tmp', emptyDir: {} },
          { name: 'mem', emptyDir: { medium: 'Memory' } },
        ],
        [
          { name: 'tmp', mountPath: '/tmp2' },
          { name: 'mem', mountPath: '/mem' },
        ],
      ),
    )
    await fixture.untilRunning('shop')
    const path = `${ROOT}/pods/${uid}/volumes/kubernetes.io~empty-dir`
    expect(fixture.disk.mounted).toEqual(new Set([`${path}/mem`]))
    fixture.disk.put(`${path}/tmp/file`, 'file', 'scratch')
    await fixture.server.delete(`${PODS}/shop`)
    await fixture.untilDeleted('shop')
    await fixture.waitUntil(
      () => !Object.keys(fixture.disk.snapshot()).some((entry) => entry.includes(uid)),
      'the directory of the pod to be removed',
    )
  })

  it('SYS-7 is checked or created by its type if it is a hostPath', async () => {
    const fixture = await createAgentFixture()
    const mount = [{ name: 'host', mountPath: '/h' }]
    const withHostPath = (path: string, type: string) => podFields([{ name: 'host', hostPath: { path, type } }], mount)
    await fixture.createPod('accepted', [], withHostPath('/srv/new', 'DirectoryOrCreate'))
    await fixture.untilRunning('accepted')
    expect(fixture.disk.snapshot()['/srv/new']).toBe('directory')
    await fixture.createPod('rejected', [], withHostPath('/srv/new', 'File'))
    await fixture.waitUntil(async () => (await fixture.events('rejected')).length > 0, 'an event')
    expect((await fixture.events('rejected'))[0]).toMatch(/hostPath type check failed: \/srv\/new is not a file/)
    await fixture.server.delete(`${PODS}/accepted`)
    await fixture.untilDeleted('accepted')
    expect(fixture.disk.snapshot()['/srv/new']).toBe('directory')
  })

  it('SYS-7 is rejected with the name of its source if the source is not supported', async () => {
    const fixture = await createAgentFixture()
    const config = podFields([{ name: 'conf', configMap: { name: 'c' } }], [{ name: 'conf', mountPath: '/c' }])
    await fixture.createPod('shop', [], config)
    await fixture.waitUntil(async () => (await fixture.events('shop')).length > 0, 'an event')
    expect((await fixture.events('shop'))[0]).toContain('this node agent does not support configMap volumes')
    expect(await fixture.phase('shop')).toBe('Pending')
  })

  it('SYS-7 is used without a driver call if it is a hostPath PV', async () => {
    const fixture = await createAgentFixture()
    fixture.disk.put('/srv/pv', 'directory')
    await fixture.createVolume('orders', { pv: { csi: undefined, hostPath: { path: '/srv/pv', type: 'Directory' } } })
    await fixture.createPod('shop', ['orders'])
    await fixture.untilRunning('shop')
    expect(fixture.calls()).toEqual([])
  })

  it('SYS-7 is mounted with a subPath, unless the subPath contains a link', async () => {
    const fixture = await createAgentFixture()
    fixture.disk.put('/srv/data', 'directory')
    fixture.disk.put('/srv/data/link', 'link', '/etc')
    const withSubPath = (subPath: string) =>
      podFields([{ name: 'd', hostPath: { path: '/srv/data' } }], [{ name: 'd', mountPath: '/d', subPath }])
    await fixture.createPod('accepted', [], withSubPath('a/b'))
    await fixture.untilRunning('accepted')
    expect(fixture.disk.snapshot()['/srv/data/a/b']).toBe('directory')
    await fixture.createPod('rejected', [], withSubPath('link/passwd'))
    await fixture.waitUntil(async () => (await fixture.events('rejected')).length > 0, 'an event')
    expect((await fixture.events('rejected'))[0]).toMatch(/^Failed: Error: failed to prepare subPath .* link/)
    const { containerStatuses } = (await fixture.pod('rejected')).status
    expect(containerStatuses[0].state.waiting.reason).toBe('CreateContainerConfigError')
  })
})

describe('a pod', () => {
  it('SYS-7 waits for an unbound claim, with an event after two minutes', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders', { claimStatus: { phase: 'Pending' } })
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntil(
      async () => JSON.stringify((await fixture.pod('shop')).status).includes('is not bound to a volume yet'),
      'the reason in the pod status',
    )
    expect(await fixture.events('shop')).toEqual([])
    await fixture.server.clock.advance(124_000)
    await fixture.waitUntil(async () => (await fixture.events('shop')).length > 0, 'an event')
    expect((await fixture.events('shop'))[0]).toMatch(
      /^FailedMount: Unable to attach or mount volumes: unmounted volumes=\[orders\]/,
    )
    await fixture.server.patch(`${CLAIMS}/orders/status`, { status: { phase: 'Bound' } }, 'merge')
    await fixture.untilRunning('shop')
  })

  it('SYS-7 stays Pending if the node affinity of its volume does not match the node', async () => {
    const fixture = await createAgentFixture()
    const otherZone = { matchExpressions: [{ key: 'example.com/zone', operator: 'In', values: ['far'] }] }
    await fixture.createVolume('orders', { pv: { nodeAffinity: { required: { nodeSelectorTerms: [otherZone] } } } })
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntil(async () => (await fixture.events('shop')).length > 0, 'an event')
    expect((await fixture.events('shop'))[0]).toContain('NodeAffinity check failed')
    expect(fixture.calls()).toEqual([])
  })

  it('SYS-7 keeps running while its claim is being deleted', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders')
    await fixture.createPod('shop', ['orders'])
    await fixture.untilRunning('shop')
    await fixture.server.delete(`${CLAIMS}/orders`)
    await fixture.server.patch(`${PODS}/shop`, { metadata: { labels: { look: 'again' } } }, 'merge')
    await fixture.untilIdle()
    expect(await fixture.phase('shop')).toBe('Running')
    expect(await fixture.events('shop')).toEqual([])
    fixture.kill()
    fixture.start()
    await fixture.untilIdle()
    expect(await fixture.events('shop')).toEqual([])
  })
})

describe('the stats of a volume', () => {
  it('SYS-7 PIO-8 are exported under the names of the kubelet until the pod is deleted', async () => {
    const rates = { readIops: 10, writeIops: 30, readBps: 1_000, writeBps: 2_000 }
    const fixture = await createAgentFixture({ agent: { ratesAt: async () => rates } })
    await fixture.createVolume('orders', { pv: { capacity: { storage: '1Gi', iops: '100', throughput: '10Mi' } } })
    await fixture.createPod('shop', ['orders'])
    await fixture.untilRunning('shop')
    const exportedSamples = async () => {
      const lines = (await fixture.registry.metrics())
        .split('\n')
        .filter((line) => /^(kubelet|stowage)_volume/.test(line))
      return lines.map((line) => line.replace('namespace="default",persistentvolumeclaim="orders"', 'it'))
    }
    await fixture.waitUntil(async () => (await exportedSamples()).length > 0, 'the metrics of the volume')
    expect(await exportedSamples()).toEqual([
      'kubelet_volume_stats_capacity_bytes{it} 1073741824',
      'kubelet_volume_stats_available_bytes{it} 1073741824',
      'kubelet_volume_stats_used_bytes{it} 0',
      'stowage_volume_iops_used{it,direction="read"} 10',
      'stowage_volume_iops_used{it,direction="write"} 30',
      'stowage_volume_iops_available{it,direction="read"} 90',
      'stowage_volume_iops_available{it,direction="write"} 70',
      'stowage_volume_throughput_used_bytes{it,direction="read"} 1000',
      'stowage_volume_throughput_used_bytes{it,direction="write"} 2000',
      'stowage_volume_throughput_available_bytes{it,direction="read"} 10484760',
      'stowage_volume_throughput_available_bytes{it,direction="write"} 10483760',
    ])
    expect(await fixture.registry.metrics()).toMatch(
      /storage_operation_duration_seconds_count\{volume_plugin="kubernetes.io\/csi:fake.stowage.example",operation_name="volume_mount",status="success",migrated="false"\} 1/,
    )
    await fixture.server.delete(`${PODS}/shop`)
    await fixture.untilDeleted('shop')
    await fixture.waitUntil(
      async () => (await exportedSamples()).length === 0,
      'the metrics of the volume to be removed',
    )
  })

  it('SYS-7 are collected with NodeGetVolumeStats every one to two minutes', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders')
    await fixture.createPod('shop', ['orders'])
    await fixture.untilRunning('shop')
    const countCalls = () => fixture.fake.record.calls.filter(({ method }) => method === 'NodeGetVolumeStats').length
    await fixture.waitUntil(() => countCalls() === 2, 'the first two calls')
    for (let minute = 0; minute < 10; minute++) {
      await fixture.server.clock.advance(60_000)
      await fixture.untilIdle()
    }
    expect(countCalls()).toBeGreaterThanOrEqual(2 + 5)
    expect(countCalls()).toBeLessThanOrEqual(2 + 10)
  })
})
