import { mkdir, mkdtemp, readFile, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { systemClock } from '../../../base/clock.ts'
import { manualClock } from '../../../base/manual-clock.ts'
import { chooseKubeconfig } from './kubeconfig-file.ts'
import { CONTEXTS_FILE, mergeContext, removeAddedContexts } from './merge.ts'

const OTHER_CONFIG = `# my clusters
apiVersion: v1
kind: Config
clusters:
  - name: prod # careful
    cluster:
      server: https://prod.example:6443
      extensions: [ { name: note, extension: { by: me } } ]
users:
  - name: prod
    user: { exec: { command: get-token, apiVersion: client.authentication.k8s.io/v1 } }
contexts:
  - name: prod
    context: { cluster: prod, user: prod }
current-context: prod
`

let dir: string
let file: string
const clock = systemClock()
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-merge-'))
  file = join(dir, '.kube', 'config')
})
afterEach(() => rm(dir, { recursive: true, force: true }))

const merge = ({ context = 'stowage', ca = 'ca', cert = 'cert', server = 'https://127.0.0.1:7443' } = {}) =>
  mergeContext({
    dataDir: dir,
    context,
    credential: { server, caCert: ca, credential: { user: 'stowage-admin', cert, key: 'key' } },
    env: { HOME: dir },
    clock,
  })
const readConfig = async () => parse(await readFile(file, 'utf8'))
async function writeOtherConfig(text = OTHER_CONFIG): Promise<void> {
  await mkdir(join(dir, '.kube'), { recursive: true })
  await writeFile(file, text, { mode: 0o644 })
}
const namesIn = (config: Record<string, { name: string }[]>) =>
  ['clusters', 'users', 'contexts'].map((list) => config[list]!.map(({ name }) => name))

describe('mergeContext', () => {
  it('SYS-25 creates a private kubeconfig with the context of the server', async () => {
    await merge()
    expect(await readConfig()).toEqual({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        { name: 'stowage', cluster: { server: 'https://127.0.0.1:7443', 'certificate-authority-data': 'Y2E=' } },
      ],
      users: [{ name: 'stowage', user: { 'client-certificate-data': 'Y2VydA==', 'client-key-data': 'a2V5' } }],
      contexts: [{ name: 'stowage', context: { cluster: 'stowage', user: 'stowage' } }],
      'current-context': 'stowage',
    })
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(await readFile(join(dir, CONTEXTS_FILE), 'utf8')).not.toContain('a2V5')
    await expect(stat(`${file}.lock`)).rejects.toThrow('ENOENT')
  })

  it('SYS-25 keeps everything else in a kubeconfig, including comments', async () => {
    await writeOtherConfig()
    await merge()
    const text = await readFile(file, 'utf8')
    for (const line of OTHER_CONFIG.split('\n').slice(0, -2)) expect(text).toContain(line.trim())
    expect(namesIn(await readConfig())).toEqual([
      ['prod', 'stowage'],
      ['prod', 'stowage'],
      ['prod', 'stowage'],
    ])
    expect((await readConfig())['current-context']).toBe('stowage')
  })

  it('SYS-25 updates the address and certificate of the server and keeps the namespace of the context', async () => {
    await merge()
    await writeFile(
      file,
      (await readFile(file, 'utf8')).replace('user: stowage', 'user: stowage\n      namespace: shop'),
    )
    await merge({ server: 'https://127.0.0.1:9', cert: 'renewed', ca: 'renewed' })
    const { clusters, contexts } = await readConfig()
    expect(clusters).toMatchObject([{ cluster: { server: 'https://127.0.0.1:9' } }])
    expect(contexts).toEqual([{ name: 'stowage', context: { cluster: 'stowage', user: 'stowage', namespace: 'shop' } }])
  })

  it('SYS-25 rejects a name that another server has, and changes nothing', async () => {
    await writeOtherConfig()
    await expect(merge({ context: 'prod' })).rejects.toThrow(
      'already has the cluster and the user and the context "prod" of another server',
    )
    expect(await readFile(file, 'utf8')).toBe(OTHER_CONFIG)
    await expect(stat(join(dir, CONTEXTS_FILE))).rejects.toThrow('ENOENT')
  })

  it.each(['[1, 2]', 'a: [', 'text'])('SYS-25 does not change the file %j, which is not a kubeconfig', async (text) => {
    await writeOtherConfig(text)
    await expect(merge()).rejects.toThrow('is not a kubeconfig')
    expect(await readFile(file, 'utf8')).toBe(text)
  })

  it('SYS-25 fails if another program keeps the lock', async () => {
    await writeOtherConfig()
    await writeFile(`${file}.lock`, '')
    const lockClock = manualClock()
    const mergePromise = mergeContext({
      dataDir: dir,
      context: 'stowage',
      credential: { server: 'https://a', caCert: 'ca', credential: { user: 'u', cert: 'c', key: 'k' } },
      env: { HOME: dir },
      clock: { ...lockClock, sleep: (ms) => lockClock.advance(ms) },
    })
    await expect(mergePromise).rejects.toThrow(`rm ${file}.lock`)
    expect(await readFile(file, 'utf8')).toBe(OTHER_CONFIG)
  })

  it('SYS-25 writes to the target of a symbolic link', async () => {
    await writeOtherConfig()
    await rm(file)
    await writeFile(join(dir, 'real'), OTHER_CONFIG)
    await symlink(join(dir, 'real'), file)
    await merge()
    expect(await readlink(file)).toBe(join(dir, 'real'))
    expect(await readFile(join(dir, 'real'), 'utf8')).toContain('stowage')
  })
})

describe('removeAddedContexts', () => {
  const remove = () => removeAddedContexts(dir, { clock })

  it('SYS-25 restores the earlier content of the kubeconfig', async () => {
    await writeOtherConfig()
    const oldConfig = await readConfig()
    await merge()
    await merge({ server: 'https://127.0.0.1:9' })
    await merge({ context: 'second' })
    expect(await remove()).toEqual([])
    expect(await readConfig()).toEqual(oldConfig)
    expect(await readFile(file, 'utf8')).toContain('# careful')
    expect(await remove()).toEqual([])
  })

  it('SYS-25 deletes a kubeconfig that merge created, unless it has other entries', async () => {
    await merge()
    await remove()
    await expect(stat(file)).rejects.toThrow('ENOENT')
    await merge()
    const text = await readFile(file, 'utf8')
    await writeFile(file, text.replace('contexts:\n', 'contexts:\n  - name: mine\n    context: {}\n'))
    await remove()
    expect(await readConfig()).toMatchObject({
      clusters: [],
      users: [],
      contexts: [{ name: 'mine' }],
      'current-context': '',
    })
  })

  it('SYS-25 keeps the cluster of another server with the same name, and the context that the user has chosen', async () => {
    await writeOtherConfig()
    await merge()
    const changedText = (await readFile(file, 'utf8')).replace('Y2E=', 'b3RoZXI=')
    await writeFile(file, changedText)
    await remove()
    expect(await readFile(file, 'utf8')).toBe(changedText)
    await writeFile(
      file,
      changedText.replace('b3RoZXI=', 'Y2E=').replace('current-context: stowage', 'current-context: prod'),
    )
    await remove()
    expect(await readConfig()).toEqual(parse(OTHER_CONFIG))
  })

  it('SYS-25 reports a kubeconfig that cannot be changed', async () => {
    await merge()
    await writeFile(file, '[]')
    expect(await remove()).toEqual([expect.stringContaining(`The context "stowage" stays in ${file}: `)])
  })
})

it('SYS-25 chooseKubeconfig chooses the same file as kubectl', async () => {
  await writeOtherConfig()
  expect(await chooseKubeconfig({ HOME: dir })).toBe(file)
  expect(await chooseKubeconfig({ HOME: dir, KUBECONFIG: '/missing/a' })).toBe('/missing/a')
  expect(await chooseKubeconfig({ HOME: dir, KUBECONFIG: `/missing/a:${file}:/missing/b` })).toBe(file)
  expect(await chooseKubeconfig({ HOME: dir, KUBECONFIG: ':/missing/a::/missing/b' })).toBe('/missing/b')
})
