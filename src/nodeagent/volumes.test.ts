// Attachment, expansion, volumes without a driver, waiting pods and stats.
import { describe, expect, it } from 'vitest'
import { nodeKind } from '../api/kinds/node/node.ts'
import type { Client } from '../client/index.ts'
import { attachmentNameOf } from '../volumes/attachment-names.ts'
import { CLAIMS, createAgentFixture, DRIVER, NODE, PODS, ROOT, VOLUMES } from './agent.fixture.ts'

const ATTACHMENTS = '/apis/storage.k8s.io/v1/volumeattachments'

describe('attachment', () => {
  const handleOf = (world: Awaited<ReturnType<typeof createAgentFixture>>) => Object.keys(world.fake.state.volumes)[0]!

  for (const csiDriver of [{ attachRequired: true }, null]) {
    const situation = csiDriver ? 'with attachRequired' : 'without a CSIDriver'
    it(`SYS-18 SYS-7 waits for the volume to be attached, ${situation}, and passes on the publish context`, async () => {
      const world = await createAgentFixture({ csiDriver })
      await world.aVolume('orders')
      await world.aPod('shop', ['orders'])
      const name = attachmentNameOf({ driver: DRIVER, handle: handleOf(world), nodeName: NODE })
      await world.until(
        async () => JSON.stringify((await world.pod('shop')).status).includes(`VolumeAttachment ${name}`),
        'the pod to say what it waits for',
      )
      expect(world.calls()).toEqual([])
      await world.server.post(ATTACHMENTS, {
        metadata: { name },
        spec: { attacher: DRIVER, nodeName: NODE, source: { persistentVolumeName: 'pv-orders' } },
      })
      const status = { attached: true, attachmentMetadata: { device: '/dev/x' } }
      await world.server.patch(`${ATTACHMENTS}/${name}/status`, { status })
      await world.untilRunning('shop')
      for (const method of ['NodeStageVolume', 'NodePublishVolume']) {
        const call = world.fake.record.calls.find((one) => one.method === method)
        expect(call?.request).toMatchObject({ publishContext: { device: '/dev/x' } })
      }
      const inUse = async () => (await world.server.get(`/api/v1/nodes/${NODE}`)).json.status.volumesInUse ?? []
      expect(await inUse()).toEqual([`kubernetes.io/csi/${DRIVER}^${handleOf(world)}`])
      await world.server.delete(`${PODS}/shop`)
      await world.untilGone('shop')
      expect(await inUse()).toEqual([])
    })
  }

  it('SYS-18 reports a volume in use before it is staged', async () => {
    const world = await createAgentFixture({ csiDriver: { attachRequired: true } })
    await world.aVolume('orders')
    const name = attachmentNameOf({ driver: DRIVER, handle: handleOf(world), nodeName: NODE })
    await world.server.post(ATTACHMENTS, {
      metadata: { name },
      spec: { attacher: DRIVER, nodeName: NODE, source: { persistentVolumeName: 'pv-orders' } },
    })
    await world.server.patch(`${ATTACHMENTS}/${name}/status`, { status: { attached: true } })
    world.script([{ method: 'NodeStageVolume', times: 1, effect: { do: 'hang' } }])
    await world.aPod('shop', ['orders'])
    await world.until(() => world.fake.script.hanging === 1, 'the driver to hang')
    expect((await world.server.get(`/api/v1/nodes/${NODE}`)).json.status.volumesInUse).toHaveLength(1)
    world.fake.script.release()
    await world.untilRunning('shop')
  })

  it('SYS-18 does not stage a volume that is detached just before the report', async () => {
    let detach: (() => Promise<unknown>) | undefined
    const around = (client: Client): Client => ({
      ...client,
      async patch(kind: any, ref: any, patch: any, options: any) {
        const isReport = kind === nodeKind && (patch.body.status?.volumesInUse ?? []).length > 0
        if (isReport) await detach?.()
        return client.patch(kind, ref, patch, options) as any
      },
    })
    const world = await createAgentFixture({ csiDriver: { attachRequired: true }, around })
    await world.aVolume('orders')
    const name = attachmentNameOf({ driver: DRIVER, handle: handleOf(world), nodeName: NODE })
    const attach = async () => {
      const source = { persistentVolumeName: 'pv-orders' }
      await world.server.post(ATTACHMENTS, { metadata: { name }, spec: { attacher: DRIVER, nodeName: NODE, source } })
      await world.server.patch(`${ATTACHMENTS}/${name}/status`, { status: { attached: true } })
    }
    detach = async () => {
      detach = undefined
      await world.server.delete(`${ATTACHMENTS}/${name}`)
    }
    await attach()
    await world.aPod('shop', ['orders'])
    await world.until(() => detach === undefined, 'the volume to be detached')
    await world.untilQuiet()
    expect(world.calls()).toEqual([])
    expect(await world.phase('shop')).toBe('Pending')
    await attach()
    await world.untilRunning('shop')
    expect(world.calls()).toEqual(['NodeStageVolume', 'NodePublishVolume'])
  })

  it('SYS-18 stages only volumes in volumesAttached on a server without transactions', async () => {
    const around = (client: Client): Client => ({ ...client, commitsAtomically: async () => false })
    const world = await createAgentFixture({ csiDriver: { attachRequired: true }, around })
    await world.aVolume('orders')
    const name = attachmentNameOf({ driver: DRIVER, handle: handleOf(world), nodeName: NODE })
    const source = { persistentVolumeName: 'pv-orders' }
    await world.server.post(ATTACHMENTS, { metadata: { name }, spec: { attacher: DRIVER, nodeName: NODE, source } })
    await world.server.patch(`${ATTACHMENTS}/${name}/status`, { status: { attached: true } })
    await world.aPod('shop', ['orders'])
    await world.until(
      async () => JSON.stringify((await world.pod('shop')).status).includes('attached volumes of node'),
      'the pod to say what it waits for',
    )
    expect(world.calls()).toEqual([])
    const volumesAttached = [{ name: `kubernetes.io/csi/${DRIVER}^${handleOf(world)}`, devicePath: '' }]
    await world.server.patch(`/api/v1/nodes/${NODE}/status`, { status: { volumesAttached } })
    await world.untilRunning('shop')
  })

  it('SYS-18 reports mounted volumes with its first status after a restart', async () => {
    const said: string[][] = []
    const around = (client: Client): Client => ({
      ...client,
      async patch(kind: any, ref: any, patch: any, options: any) {
        if (kind === nodeKind && patch.body.status) said.push(patch.body.status.volumesInUse ?? [])
        return client.patch(kind, ref, patch, options) as any
      },
      async create(kind: any, object: any, options: any) {
        if (kind === nodeKind) said.push(object.status.volumesInUse ?? [])
        return client.create(kind, object, options) as any
      },
    })
    const world = await createAgentFixture({ csiDriver: { attachRequired: true }, around })
    await world.aVolume('orders')
    const name = attachmentNameOf({ driver: DRIVER, handle: handleOf(world), nodeName: NODE })
    const source = { persistentVolumeName: 'pv-orders' }
    await world.server.post(ATTACHMENTS, { metadata: { name }, spec: { attacher: DRIVER, nodeName: NODE, source } })
    await world.server.patch(`${ATTACHMENTS}/${name}/status`, { status: { attached: true } })
    await world.aPod('shop', ['orders'])
    await world.untilRunning('shop')

    const ofThis = [`kubernetes.io/csi/${DRIVER}^${handleOf(world)}`]
    for (const isNodeDeleted of [false, true]) {
      world.kill()
      if (isNodeDeleted) await world.server.delete(`/api/v1/nodes/${NODE}`)
      said.length = 0
      world.start()
      await world.until(() => said.length > (isNodeDeleted ? 1 : 0), 'the node to report')
      await world.untilQuiet()
      expect(said).toEqual(said.map(() => ofThis))
    }
    await world.server.delete(`${PODS}/shop`)
    await world.untilGone('shop')
    expect((await world.server.get(`/api/v1/nodes/${NODE}`)).json.status.volumesInUse).toBeUndefined()
  })

  it('SYS-18 ignores a delayed report of volumes in use', async () => {
    let late: (() => Promise<unknown>) | undefined
    const around = (client: Client): Client => ({
      ...client,
      async patch(kind: any, ref: any, patch: any, options: any) {
        const isReport = kind === nodeKind && patch.body.status && !late
        if (isReport) late = () => client.patch(kind, ref, patch, options) as any
        return client.patch(kind, ref, patch, options) as any
      },
    })
    const world = await createAgentFixture({ csiDriver: { attachRequired: true }, around })
    await world.aVolume('orders')
    const name = attachmentNameOf({ driver: DRIVER, handle: handleOf(world), nodeName: NODE })
    const source = { persistentVolumeName: 'pv-orders' }
    await world.server.post(ATTACHMENTS, { metadata: { name }, spec: { attacher: DRIVER, nodeName: NODE, source } })
    await world.server.patch(`${ATTACHMENTS}/${name}/status`, { status: { attached: true } })
    await world.aPod('shop', ['orders'])
    await world.untilRunning('shop')
    await expect(late?.()).rejects.toMatchObject({ code: 409 })
    expect((await world.server.get(`/api/v1/nodes/${NODE}`)).json.status.volumesInUse).toHaveLength(1)
  })

  it('SYS-18 records the attach error on the pod', async () => {
    const world = await createAgentFixture({ csiDriver: { attachRequired: true } })
    await world.aVolume('orders')
    const name = attachmentNameOf({ driver: DRIVER, handle: handleOf(world), nodeName: NODE })
    await world.server.post(ATTACHMENTS, {
      metadata: { name },
      spec: { attacher: DRIVER, nodeName: NODE, source: { persistentVolumeName: 'pv-orders' } },
    })
    const attachError = { message: 'the array is on fire', time: '2026-01-01T00:00:00Z' }
    await world.server.patch(`${ATTACHMENTS}/${name}/status`, { status: { attached: false, attachError } })
    await world.aPod('shop', ['orders'])
    await world.until(async () => (await world.events('shop')).length > 0, 'an event')
    expect((await world.events('shop'))[0]).toBe(
      'FailedAttachVolume: AttachVolume.Attach failed for volume "pv-orders" : the array is on fire',
    )
  })
})

describe('expansion', () => {
  const pending = {
    allocatedResources: { storage: '2Gi' },
    allocatedResourceStatuses: { storage: 'NodeResizePending' },
  }

  it('SYS-7 expands a mounted volume and updates the claim', async () => {
    const world = await createAgentFixture()
    await world.aVolume('orders')
    await world.aPod('shop', ['orders'])
    await world.untilRunning('shop')
    world.calls()
    for (const volume of Object.values(world.fake.state.volumes)) volume.capacityBytes = 2 * 1024 ** 3
    await world.server.patch(`${VOLUMES}/pv-orders`, { spec: { capacity: { storage: '2Gi' } } }, 'merge')
    await world.server.patch(`${CLAIMS}/orders/status`, { status: pending }, 'merge')
    const claim = async () => (await world.server.get(`${CLAIMS}/orders`)).json.status
    await world.until(async () => (await claim()).capacity.storage === '2Gi', 'the claim to have grown')
    expect(world.calls()).toEqual(['NodeExpandVolume'])
    expect((await claim()).allocatedResourceStatuses).toBeUndefined()
    expect(await world.events('shop')).toContainEqual(expect.stringMatching(/^FileSystemResizeSuccessful: /))
  })

  it('SYS-7 does not repeat an expansion that fails in use, and the pod runs', async () => {
    const world = await createAgentFixture()
    await world.aVolume('orders', { pv: { capacity: { storage: '2Gi' } }, claimStatus: pending })
    world.script([{ method: 'NodeExpandVolume', effect: { do: 'fail', code: 'FAILED_PRECONDITION' } }])
    await world.aPod('shop', ['orders'])
    await world.untilRunning('shop')
    await world.server.patch(`${PODS}/shop`, { metadata: { labels: { look: 'again' } } }, 'merge')
    await world.untilQuiet()
    expect(world.calls().filter((call) => call === 'NodeExpandVolume')).toHaveLength(1)
    expect(await world.events('shop')).toContainEqual(expect.stringMatching(/^VolumeResizeFailed: /))
  })
})

describe('without a driver', () => {
  const podOf = (volumes: object[], mounts: object[]) => ({ spec: { volumes }, container: { volumeMounts: mounts } })

  it('SYS-7 keeps an emptyDir as long as its pod', async () => {
    const world = await createAgentFixture()
    const uid = await world.aPod(
      'shop',
      [],
      podOf(
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
    await world.untilRunning('shop')
    const path = `${ROOT}/pods/${uid}/volumes/kubernetes.io~empty-dir`
    expect(world.disk.mounted).toEqual(new Set([`${path}/mem`]))
    world.disk.put(`${path}/tmp/file`, 'file', 'scratch')
    await world.server.delete(`${PODS}/shop`)
    await world.untilGone('shop')
    await world.until(() => !Object.keys(world.disk.show()).some((one) => one.includes(uid)), 'everything to go')
  })

  it('SYS-7 checks and creates a hostPath by its type', async () => {
    const world = await createAgentFixture()
    const mount = [{ name: 'host', mountPath: '/h' }]
    const at = (path: string, type: string) => podOf([{ name: 'host', hostPath: { path, type } }], mount)
    await world.aPod('makes', [], at('/srv/new', 'DirectoryOrCreate'))
    await world.untilRunning('makes')
    expect(world.disk.show()['/srv/new']).toBe('directory')
    await world.aPod('refused', [], at('/srv/new', 'File'))
    await world.until(async () => (await world.events('refused')).length > 0, 'an event')
    expect((await world.events('refused'))[0]).toMatch(/hostPath type check failed: \/srv\/new is not a file/)
    await world.server.delete(`${PODS}/makes`)
    await world.untilGone('makes')
    expect(world.disk.show()['/srv/new']).toBe('directory')
  })

  it('SYS-7 names an unsupported volume source', async () => {
    const world = await createAgentFixture()
    const config = podOf([{ name: 'conf', configMap: { name: 'c' } }], [{ name: 'conf', mountPath: '/c' }])
    await world.aPod('shop', [], config)
    await world.until(async () => (await world.events('shop')).length > 0, 'an event')
    expect((await world.events('shop'))[0]).toContain('this node agent does not provide configMap volumes')
    expect(await world.phase('shop')).toBe('Pending')
  })

  it('SYS-7 uses a hostPath PV', async () => {
    const world = await createAgentFixture()
    world.disk.put('/srv/pv', 'directory')
    await world.aVolume('orders', { pv: { csi: undefined, hostPath: { path: '/srv/pv', type: 'Directory' } } })
    await world.aPod('shop', ['orders'])
    await world.untilRunning('shop')
    expect(world.calls()).toEqual([])
  })

  it('SYS-7 creates a subPath and rejects one through a link', async () => {
    const world = await createAgentFixture()
    world.disk.put('/srv/data', 'directory')
    world.disk.put('/srv/data/link', 'link', '/etc')
    const at = (subPath: string) =>
      podOf([{ name: 'd', hostPath: { path: '/srv/data' } }], [{ name: 'd', mountPath: '/d', subPath }])
    await world.aPod('fine', [], at('a/b'))
    await world.untilRunning('fine')
    expect(world.disk.show()['/srv/data/a/b']).toBe('directory')
    await world.aPod('escapes', [], at('link/passwd'))
    await world.until(async () => (await world.events('escapes')).length > 0, 'an event')
    expect((await world.events('escapes'))[0]).toMatch(/^Failed: Error: failed to prepare subPath .* link/)
    const { containerStatuses } = (await world.pod('escapes')).status
    expect(containerStatuses[0].state.waiting.reason).toBe('CreateContainerConfigError')
  })
})

describe('waiting', () => {
  it('SYS-7 waits for an unbound claim, with an event after two minutes', async () => {
    const world = await createAgentFixture()
    await world.aVolume('orders', { claimStatus: { phase: 'Pending' } })
    await world.aPod('shop', ['orders'])
    await world.until(
      async () => JSON.stringify((await world.pod('shop')).status).includes('is not bound to a volume yet'),
      'the pod to say what it waits for',
    )
    expect(await world.events('shop')).toEqual([])
    await world.server.clock.advance(124_000)
    await world.until(async () => (await world.events('shop')).length > 0, 'an event')
    expect((await world.events('shop'))[0]).toMatch(
      /^FailedMount: Unable to attach or mount volumes: unmounted volumes=\[orders\]/,
    )
    await world.server.patch(`${CLAIMS}/orders/status`, { status: { phase: 'Bound' } }, 'merge')
    await world.untilRunning('shop')
  })

  it('SYS-7 rejects a volume that is not accessible from this node', async () => {
    const world = await createAgentFixture()
    const elsewhere = { matchExpressions: [{ key: 'example.com/zone', operator: 'In', values: ['far'] }] }
    await world.aVolume('orders', { pv: { nodeAffinity: { required: { nodeSelectorTerms: [elsewhere] } } } })
    await world.aPod('shop', ['orders'])
    await world.until(async () => (await world.events('shop')).length > 0, 'an event')
    expect((await world.events('shop'))[0]).toContain('NodeAffinity check failed')
    expect(world.calls()).toEqual([])
  })

  it('SYS-7 keeps the volume of a running pod while its claim is being deleted', async () => {
    const world = await createAgentFixture()
    await world.aVolume('orders')
    await world.aPod('shop', ['orders'])
    await world.untilRunning('shop')
    await world.server.delete(`${CLAIMS}/orders`)
    await world.server.patch(`${PODS}/shop`, { metadata: { labels: { look: 'again' } } }, 'merge')
    await world.untilQuiet()
    expect(await world.phase('shop')).toBe('Running')
    expect(await world.events('shop')).toEqual([])
    world.kill()
    world.start()
    await world.untilQuiet()
    expect(await world.events('shop')).toEqual([])
  })
})

describe('stats', () => {
  it('SYS-7 PIO-8 exports the kubelet’s volume metrics until the pod is deleted', async () => {
    const rates = { readIops: 10, writeIops: 30, readBps: 1_000, writeBps: 2_000 }
    const world = await createAgentFixture({ agent: { ratesAt: async () => rates } })
    await world.aVolume('orders', { pv: { capacity: { storage: '1Gi', iops: '100', throughput: '10Mi' } } })
    await world.aPod('shop', ['orders'])
    await world.untilRunning('shop')
    const shown = async () => {
      const lines = (await world.registry.metrics())
        .split('\n')
        .filter((line) => /^(kubelet|stowage)_volume/.test(line))
      return lines.map((line) => line.replace('namespace="default",persistentvolumeclaim="orders"', 'it'))
    }
    await world.until(async () => (await shown()).length > 0, 'the volume to be shown')
    expect(await shown()).toEqual([
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
    expect(await world.registry.metrics()).toMatch(
      /storage_operation_duration_seconds_count\{volume_plugin="kubernetes.io\/csi:fake.stowage.example",operation_name="volume_mount",status="success",migrated="false"\} 1/,
    )
    await world.server.delete(`${PODS}/shop`)
    await world.untilGone('shop')
    await world.until(async () => (await shown()).length === 0, 'the volume to be shown no more')
  })

  it('SYS-7 calls NodeGetVolumeStats every minute or two', async () => {
    const world = await createAgentFixture()
    await world.aVolume('orders')
    await world.aPod('shop', ['orders'])
    await world.untilRunning('shop')
    const asked = () => world.fake.record.calls.filter(({ method }) => method === 'NodeGetVolumeStats').length
    await world.until(() => asked() === 2, 'the first two looks')
    for (let minute = 0; minute < 10; minute++) {
      await world.server.clock.advance(60_000)
      await world.untilQuiet()
    }
    expect(asked()).toBeGreaterThanOrEqual(2 + 5)
    expect(asked()).toBeLessThanOrEqual(2 + 10)
  })
})
