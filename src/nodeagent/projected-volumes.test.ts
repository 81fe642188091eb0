// Tests volumes with files from the API: configMap, secret, downwardAPI, and projected with a ServiceAccount token.
import { describe, expect, it } from 'vitest'
import { type AgentFixture, createAgentFixture, PODS, ROOT } from './agent.fixture.ts'

const NAMESPACE = '/api/v1/namespaces/default'
const ACCOUNTS = `${NAMESPACE}/serviceaccounts`

const startPod = (fixture: AgentFixture, volume: object, spec: object = {}) =>
  fixture.createPod('shop', [], {
    spec: { volumes: [{ name: 'files', ...volume }], ...spec },
    container: { volumeMounts: [{ name: 'files', mountPath: '/files' }] },
  })

/** Returns the files of the volume by path, as a reader sees them: through the links of the visible names and `..data`. */
function filesOf({ disk }: AgentFixture, uid: string): Record<string, string> {
  const root = `${ROOT}/pods/${uid}/volumes/kubernetes.io~projected/files`
  const snapshot = disk.snapshot()
  const version = snapshot[`${root}/..data`]?.replace('-> ', `${root}/`)
  const entries = Object.entries(snapshot)
    .filter(([path, text]) => path.startsWith(`${version}/`) && text !== 'directory')
    .map(([path, text]) => [path.slice(version!.length + 1), text] as const)
  return Object.fromEntries(
    entries.filter(([path]) => {
      const [name] = path.split('/')
      return snapshot[`${root}/${name}`] === `-> ..data/${name}`
    }),
  )
}

describe('a projected volume', () => {
  it('SYS-7 contains entries of ConfigMaps and Secrets, fields of the pod, and a token that is bound to the pod', async () => {
    const fixture = await createAgentFixture()
    const { server } = fixture
    await server.post(`${NAMESPACE}/configmaps`, { metadata: { name: 'conf' }, data: { 'ca.crt': 'PEM', other: 'x' } })
    await server.post(`${NAMESPACE}/secrets`, { metadata: { name: 'key' }, stringData: { password: 'p' } })
    await server.post(ACCOUNTS, { metadata: { name: 'robot' } })
    const sources = [
      { serviceAccountToken: { path: 'token', expirationSeconds: 3_600 } },
      { configMap: { name: 'conf', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      { secret: { name: 'key' } },
      { configMap: { name: 'absent', optional: true } },
      { downwardAPI: { items: [{ path: 'pod/namespace', fieldRef: { fieldPath: 'metadata.namespace' } }] } },
    ]
    const uid = await startPod(fixture, { projected: { sources } }, { serviceAccountName: 'robot' })
    await fixture.waitUntilRunning('shop')
    const files = filesOf(fixture, uid)
    expect(files).toEqual({
      token: expect.stringMatching(/^eyJ/),
      'ca.crt': 'PEM',
      password: 'p',
      'pod/namespace': 'default',
    })
    const spec = { token: files.token }
    const { json } = await server.post('/apis/authentication.k8s.io/v1/tokenreviews', { spec })
    expect(json.status.user).toMatchObject({
      username: 'system:serviceaccount:default:robot',
      extra: { 'authentication.kubernetes.io/pod-uid': [uid] },
    })

    await server.delete(`${PODS}/shop`)
    await fixture.waitUntilDeleted('shop')
    await fixture.waitUntil(
      () => !Object.keys(fixture.disk.snapshot()).some((entry) => entry.includes(uid)),
      'the directory of the pod to be removed',
    )
  })

  it('SYS-7 is refreshed: changed entries are written, removed ones are deleted, and a token is renewed before it expires', async () => {
    const fixture = await createAgentFixture()
    const { server } = fixture
    await server.post(`${NAMESPACE}/configmaps`, { metadata: { name: 'conf' }, data: { a: '1', b: '2' } })
    await server.post(ACCOUNTS, { metadata: { name: 'robot' } })
    const sources = [
      { serviceAccountToken: { path: 'token', expirationSeconds: 600 } },
      { configMap: { name: 'conf' } },
    ]
    const uid = await startPod(fixture, { projected: { sources } }, { serviceAccountName: 'robot' })
    await fixture.waitUntilRunning('shop')
    const { token } = filesOf(fixture, uid)
    await server.patch(`${NAMESPACE}/configmaps/conf`, { data: { a: '3', b: null } }, 'merge')
    await fixture.waitUntil(() => filesOf(fixture, uid).a === '3', 'the changed entry')
    expect(Object.keys(filesOf(fixture, uid)).sort()).toEqual(['a', 'token'])
    expect(filesOf(fixture, uid).token).toBe(token)
    await server.clock.advance(480_000)
    await fixture.waitUntil(() => filesOf(fixture, uid).token !== token, 'the renewed token')
  })

  it.each([
    ['configMap', { configMap: { name: 'conf' } }, { data: { a: '1' } }, 'configmaps', 'conf'],
    ['secret', { secret: { secretName: 'key' } }, { stringData: { a: '1' } }, 'secrets', 'key'],
  ])('SYS-7 of a %s waits with an event until the object exists', async (_source, volume, content, plural, name) => {
    const fixture = await createAgentFixture()
    const uid = await startPod(fixture, volume)
    await fixture.waitUntil(async () => (await fixture.events('shop')).length > 0, 'an event')
    expect((await fixture.events('shop'))[0]).toMatch(
      /MountVolume\.SetUp failed for volume "files" : \w+ "\w+" not found/,
    )
    await fixture.server.post(`${NAMESPACE}/${plural}`, { metadata: { name }, ...content })
    await fixture.waitUntilRunning('shop')
    expect(filesOf(fixture, uid)).toEqual({ a: '1' })
  })

  it('SYS-7 contains fields and labels of the pod from the downward API', async () => {
    const fixture = await createAgentFixture()
    const items = [
      { path: 'name', fieldRef: { fieldPath: 'metadata.name' } },
      { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } },
    ]
    const uid = await startPod(fixture, { downwardAPI: { items } })
    await fixture.waitUntilRunning('shop')
    expect(filesOf(fixture, uid)).toMatchObject({ name: 'shop', labels: expect.any(String) })
  })

  it("SYS-26 contains the pod's current labels and its containers' resources from the downward API", async () => {
    const fixture = await createAgentFixture()
    const items = [
      { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } },
      { path: 'cpu', resourceFieldRef: { containerName: 'main', resource: 'limits.cpu' } },
    ]
    const uid = await startPod(fixture, { downwardAPI: { items } })
    await fixture.waitUntilRunning('shop')
    expect(filesOf(fixture, uid)).toEqual({ labels: '', cpu: '4' })
    await fixture.server.patch(`${PODS}/shop`, { metadata: { labels: { app: 'shop' } } }, 'merge')
    await fixture.waitUntil(() => filesOf(fixture, uid).labels === 'app="shop"', 'the changed labels')
  })

  it('SYS-26 shows all files of one version at any time, even if the agent is killed between any two writes', async () => {
    const fixture = await createAgentFixture()
    const { server, disk } = fixture
    await server.post(`${NAMESPACE}/configmaps`, { metadata: { name: 'conf' }, data: { a: '0', b: '0', 'c.d': '0' } })
    const uid = await startPod(fixture, {
      configMap: {
        name: 'conf',
        items: [
          { key: 'a', path: 'x/a' },
          { key: 'b', path: 'b' },
        ],
      },
    })
    await fixture.waitUntilRunning('shop')
    const seen = new Set<string>()
    const recordFiles = () => seen.add(JSON.stringify(filesOf(fixture, uid)))
    for (let version = 1; version <= 12; version++) {
      let writes = 0
      disk.beforeWrite = (_operation, path) => {
        if (!path.includes('~projected')) return
        recordFiles()
        if (++writes === version) fixture.kill()
      }
      const data = { a: String(version), b: String(version) }
      await server.patch(`${NAMESPACE}/configmaps/conf`, { data }, 'merge')
      await fixture.waitUntil(async () => {
        if (writes >= version) {
          disk.beforeWrite = recordFiles
          fixture.kill()
          fixture.start()
          writes = Number.NEGATIVE_INFINITY
        }
        return filesOf(fixture, uid).b === String(version)
      }, `version ${version}`)
    }
    disk.beforeWrite = undefined
    recordFiles()
    const versions = Array.from({ length: 13 }, (_, version) => `{"b":"${version}","x/a":"${version}"}`)
    expect([...seen].filter((files) => !versions.includes(files))).toEqual([])
    const root = `${ROOT}/pods/${uid}/volumes/kubernetes.io~projected/files`
    await fixture.waitUntil(async () => (await disk.list(root)).length === 4, 'old versions to be removed')
  })

  it.each([
    ['private if the pod has an fsGroup', { securityContext: { fsGroup: 5 } }, { mode: 0o600, user: undefined }],
    [
      'private and owned by the user if the pod runs as one',
      { securityContext: { runAsUser: 7 } },
      { mode: 0o600, user: 7 },
    ],
    ['readable by every user if the pod has neither', {}, { mode: 0o644, user: undefined }],
  ])('has a token that is %s', async (_, spec, expected) => {
    const fixture = await createAgentFixture({ autoStart: false })
    const written: object[] = []
    const { writeFile } = fixture.disk
    fixture.disk.writeFile = (path, content, mode, user) => {
      if (path.endsWith('/token')) written.push({ mode, user })
      return writeFile(path, content, mode, user)
    }
    fixture.start()
    await fixture.server.post(ACCOUNTS, { metadata: { name: 'robot' } })
    const sources = [{ serviceAccountToken: { path: 'token' } }]
    await startPod(fixture, { projected: { sources } }, { ...spec, serviceAccountName: 'robot' })
    await fixture.waitUntilRunning('shop')
    expect(written).toEqual([expected])
  })
})
