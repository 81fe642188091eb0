// Tests volumes that the agent mounts without a CSI driver: emptyDir, hostPath and subPath.
import { describe, expect, it } from 'vitest'
import { createAgentFixture, PODS, ROOT } from './agent.fixture.ts'

describe('the agent, for volumes without a CSI driver', () => {
  const podFields = (volumes: object[], mounts: object[]) => ({
    spec: { volumes },
    container: { volumeMounts: mounts },
  })

  it('SYS-7 removes an emptyDir with its pod', async () => {
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
    await fixture.waitUntilRunning('shop')
    const path = `${ROOT}/pods/${uid}/volumes/kubernetes.io~empty-dir`
    expect(fixture.disk.mountPoints).toEqual(new Set([`${path}/mem`]))
    fixture.disk.put(`${path}/tmp/file`, 'file', 'scratch')
    await fixture.server.delete(`${PODS}/shop`)
    await fixture.waitUntilDeleted('shop')
    await fixture.waitUntil(
      () => !Object.keys(fixture.disk.snapshot()).some((entry) => entry.includes(uid)),
      'the directory of the pod to be removed',
    )
  })

  it('SYS-7 checks or creates a hostPath according to its type', async () => {
    const fixture = await createAgentFixture()
    const mount = [{ name: 'host', mountPath: '/h' }]
    const withHostPath = (path: string, type: string) => podFields([{ name: 'host', hostPath: { path, type } }], mount)
    await fixture.createPod('accepted', [], withHostPath('/srv/new', 'DirectoryOrCreate'))
    await fixture.waitUntilRunning('accepted')
    expect(fixture.disk.snapshot()['/srv/new']).toBe('directory')
    await fixture.createPod('rejected', [], withHostPath('/srv/new', 'File'))
    await fixture.waitUntil(async () => (await fixture.events('rejected')).length > 0, 'an event')
    expect((await fixture.events('rejected'))[0]).toMatch(/hostPath type check failed: \/srv\/new is not a file/)
    await fixture.server.delete(`${PODS}/accepted`)
    await fixture.waitUntilDeleted('accepted')
    expect(fixture.disk.snapshot()['/srv/new']).toBe('directory')
  })

  it('SYS-7 rejects a hostPath outside the allowed directories and does not create it', async () => {
    const fixture = await createAgentFixture() // allows /srv
    fixture.disk.put('/srv/out', 'link', '/etc')
    fixture.disk.put('/etc', 'directory')
    const snapshotBefore = fixture.disk.snapshot()
    const paths = { other: '/var/new', sibling: '/srv2/new', link: '/srv/out/new', existing: '/etc' }
    for (const [name, path] of Object.entries(paths)) {
      const type = name === 'existing' ? '' : 'DirectoryOrCreate'
      const volumes = [{ name: 'host', hostPath: { path, type } }]
      await fixture.createPod(name, [], podFields(volumes, [{ name: 'host', mountPath: '/h', readOnly: true }]))
    }
    for (const name of Object.keys(paths)) {
      await fixture.waitUntil(async () => (await fixture.events(name)).length > 0, `an event of ${name}`)
    }
    expect((await fixture.events('other'))[0]).toContain(
      'hostPath /var/new is not allowed on this node. Use another kind of volume, or start the node with --allow-host-path /var/new',
    )
    expect((await fixture.events('sibling'))[0]).toContain('hostPath /srv2/new is not allowed')
    expect((await fixture.events('link'))[0]).toContain('hostPath /srv/out/new, which is /etc/new, is not allowed')
    expect((await fixture.events('existing'))[0]).toContain('hostPath /etc is not allowed')
    const createdPaths = Object.keys(fixture.disk.snapshot()).filter(
      (path) => !(path in snapshotBefore) && !path.startsWith(ROOT),
    )
    expect(createdPaths).toEqual([])
  })

  it('SYS-7 rejects a volume with an unsupported source and names the source', async () => {
    const fixture = await createAgentFixture()
    const config = podFields([{ name: 'conf', nfs: { server: 's', path: '/' } }], [{ name: 'conf', mountPath: '/c' }])
    await fixture.createPod('shop', [], config)
    await fixture.waitUntil(async () => (await fixture.events('shop')).length > 0, 'an event')
    expect((await fixture.events('shop'))[0]).toContain('this node agent does not support nfs volumes')
    expect(await fixture.phase('shop')).toBe('Pending')
  })

  it('SYS-7 uses a hostPath PV without a driver call', async () => {
    const fixture = await createAgentFixture()
    fixture.disk.put('/srv/pv', 'directory')
    await fixture.createVolume('orders', { pv: { csi: undefined, hostPath: { path: '/srv/pv', type: 'Directory' } } })
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    expect(fixture.calls()).toEqual([])
  })

  it('SYS-7 mounts a subPath, unless it contains a link', async () => {
    const fixture = await createAgentFixture()
    fixture.disk.put('/srv/data', 'directory')
    fixture.disk.put('/srv/data/link', 'link', '/etc')
    const withSubPath = (subPath: string) =>
      podFields([{ name: 'd', hostPath: { path: '/srv/data' } }], [{ name: 'd', mountPath: '/d', subPath }])
    await fixture.createPod('accepted', [], withSubPath('a/b'))
    await fixture.waitUntilRunning('accepted')
    expect(fixture.disk.snapshot()['/srv/data/a/b']).toBe('directory')
    await fixture.createPod('rejected', [], withSubPath('link/passwd'))
    await fixture.waitUntil(async () => (await fixture.events('rejected')).length > 0, 'an event')
    expect((await fixture.events('rejected'))[0]).toMatch(/^Failed: Error: failed to prepare subPath .* link/)
    const { containerStatuses } = (await fixture.pod('rejected')).status
    expect(containerStatuses[0].state.waiting.reason).toBe('CreateContainerConfigError')
  })

  it('SYS-26 evicts a pod whose emptyDir exceeds its size limit, even if the agent is killed during the eviction', async () => {
    const fixture = await createAgentFixture()
    const volumes = [{ name: 'scratch', emptyDir: { sizeLimit: '10' } }]
    const uid = await fixture.createPod('shop', [], podFields(volumes, [{ name: 'scratch', mountPath: '/s' }]))
    await fixture.waitUntilRunning('shop')
    const path = `${ROOT}/pods/${uid}/volumes/kubernetes.io~empty-dir/scratch`
    fixture.disk.put(`${path}/f`, 'file', 'ten bytes.')
    await fixture.server.clock.advance(60_000)
    await fixture.waitUntilIdle()
    expect(await fixture.phase('shop')).toBe('Running')
    fixture.disk.put(`${path}/g`, 'file', 'x')
    await fixture.waitUntil(async () => {
      const { conditions } = (await fixture.pod('shop')).status
      return conditions.some(({ type, status }: any) => type === 'DisruptionTarget' && status === 'True')
    }, 'the eviction to begin')
    fixture.kill()
    fixture.start()
    await fixture.waitUntil(async () => (await fixture.phase('shop')) === 'Failed', 'the eviction')
    const message = 'Usage of EmptyDir volume "scratch" exceeds the limit "10". '
    expect((await fixture.pod('shop')).status).toMatchObject({ reason: 'Evicted', message })
    await fixture.waitUntil(
      async () => (await fixture.events('shop')).includes(`Evicted: ${message}`),
      'the event of the eviction',
    )
    expect(await fixture.disk.kindOf(path)).toBeUndefined()
  })

  it('SYS-26 measures an emptyDir every 10 s, even if a driver requires a republish only every 60 s', async () => {
    const fixture = await createAgentFixture({ csiDriver: { attachRequired: false, requiresRepublish: true } })
    await fixture.createVolume('orders')
    const volumes = [
      { name: 'orders', persistentVolumeClaim: { claimName: 'orders' } },
      { name: 'scratch', emptyDir: { sizeLimit: '10' } },
    ]
    const mounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }))
    const uid = await fixture.createPod('shop', [], podFields(volumes, mounts))
    await fixture.waitUntilRunning('shop')
    await fixture.waitUntilIdle()
    const path = `${ROOT}/pods/${uid}/volumes/kubernetes.io~empty-dir/scratch`
    fixture.disk.put(`${path}/f`, 'file', 'eleven bytes')
    await fixture.server.clock.advance(11_000)
    await fixture.waitUntilIdle()
    const { conditions } = (await fixture.pod('shop')).status
    expect(conditions).toContainEqual(expect.objectContaining({ type: 'DisruptionTarget', status: 'True' }))
  })

  it("SYS-26 applies the pod's fsGroup to emptyDir volumes", async () => {
    const fixture = await createAgentFixture()
    const fields = podFields([{ name: 'scratch', emptyDir: {} }], [{ name: 'scratch', mountPath: '/s' }])
    const spec = { ...fields.spec, securityContext: { fsGroup: 4_242 } }
    const uid = await fixture.createPod('shop', [], { ...fields, spec })
    await fixture.waitUntilRunning('shop')
    const path = `${ROOT}/pods/${uid}/volumes/kubernetes.io~empty-dir/scratch`
    expect(fixture.disk.groups.get(path)).toMatchObject({ group: 4_242, readOnly: false })
  })
})
