// The example of docs/tutorial/provisioners.md as a vendor would have it: a package that depends on ours, compiled against
// the published types, run in its own process against a real server that binds and reclaims.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { buildProgram } from './helpers/build.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const ROOT = new URL('..', import.meta.url).pathname
const COMPILER = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const VOLUMES = '/api/v1/persistentvolumes'
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses'

const run = promisify(execFile)
let dir: string
let vendor: string
let server: RunningServer

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-sdk-'))
  vendor = await installExample(join(dir, 'vendor'))
  server = await startServer({ dataDir: join(dir, 'data') })
})
afterAll(async () => {
  await server?.stop()
  await rm(dir, { recursive: true, force: true })
})

/** What `npm install` would do, without a registry. */
async function installExample(to: string): Promise<string> {
  const ours = dirname(dirname(await buildProgram()))
  await cp(join(ROOT, 'examples', 'provisioner'), to, {
    recursive: true,
    filter: (path) => !/\/(node_modules|dist|volumes)$/.test(path),
  })
  await mkdir(join(to, 'node_modules', '@types'), { recursive: true })
  await symlink(ours, join(to, 'node_modules', 'stowage'))
  for (const name of ['@types/node', 'undici-types']) {
    await symlink(join(ROOT, 'node_modules', name), join(to, 'node_modules', name))
  }
  return to
}

const compile = (...flags: string[]) => run(process.execPath, [COMPILER, ...flags], { cwd: vendor })

interface RunningProvisioner {
  readonly child: ChildProcess
  readonly url: string
  log(): string
  end(signal: NodeJS.Signals): Promise<number | null>
}

/** Resolves once it leads or stands by. */
async function startProvisioner({ until = 'working', program = 'dist/main.js' } = {}): Promise<RunningProvisioner> {
  const flags = ['--kubeconfig', server.kubeconfig, '--http-endpoint', '127.0.0.1:0', '--retry-interval-start', '100ms']
  const env = { ...process.env, FAST_ROOT: join(dir, 'fast'), SLOW_ROOT: join(dir, 'slow') }
  const child = spawn(process.execPath, [program, ...flags], {
    cwd: vendor,
    env,
    stdio: ['ignore', 'inherit', 'pipe'],
  })
  const gone = once(child, 'exit')
  let log = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    log += text
  })
  const said = (message: string) => log.split('\n').find((line) => line.includes(`"msg":"${message}"`))
  await eventually(`the provisioner to say "${until}"`, async () => {
    if (child.exitCode !== null) throw new Error(`the provisioner ended early:\n${log}`)
    return said(until)
  })
  return {
    child,
    url: JSON.parse(said('started')!).monitoring,
    log: () => log,
    async end(signal) {
      child.kill(signal)
      return (await gone)[0]
    },
  }
}

/** Polls until it exists, or until the test's own timeout. */
async function eventually<T>(what: string, look: () => Promise<T | undefined | false>): Promise<T> {
  for (let tries = 0; tries < 2_000; tries++) {
    const found = await look()
    if (found) return found
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  throw new Error(`waited in vain for ${what}`)
}

async function apply(manifest: string): Promise<void> {
  for (const document of parseAllDocuments(await readFile(join(vendor, 'manifests', manifest), 'utf8'))) {
    const object = document.toJSON()
    const { status, text } = await server.call('POST', object.kind === 'StorageClass' ? CLASSES : CLAIMS, object)
    expect(status, text).toBe(201)
  }
}
const aClaim = (name: string, storageClassName: string, more: object = {}) =>
  server.call('POST', CLAIMS, {
    metadata: { name },
    spec: { storageClassName, accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } }, ...more },
  })
const bound = (name: string) =>
  eventually(`the claim ${name} to be bound`, async () => {
    const claim = (await server.call('GET', `${CLAIMS}/${name}`)).json
    return claim.status?.phase === 'Bound' && (await server.call('GET', `${VOLUMES}/${claim.spec.volumeName}`)).json
  })
const gone = (path: string) => eventually(`${path} to go`, async () => (await server.call('GET', path)).status === 404)
const volumesOn = async (tier: string) => (await readdir(join(dir, tier))).filter((name) => !name.startsWith('.'))
const eventsAbout = async (name: string) => {
  const query = new URLSearchParams({ fieldSelector: `involvedObject.name=${name}` })
  return (await server.call('GET', `/api/v1/namespaces/default/events?${query}`)).json.items as any[]
}

describe('a vendor’s provisioner in TypeScript', () => {
  it('PROV-17 compiles against the published types with skipLibCheck off, and its own unit tests pass', async () => {
    await compile()
    const { stdout } = await run(process.execPath, ['--test', '--test-reporter=tap', 'dist/tiers.test.js'], {
      cwd: vendor,
    })
    expect(stdout).toMatch(/# pass [1-9]/)
    expect(stdout).toMatch(/# fail 0/)
  })

  it('PROV-17 the code in the manual compiles', async () => {
    const manual = await readFile(join(ROOT, 'docs', 'tutorial', 'provisioners.md'), 'utf8')
    const shown = [...manual.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code)
    expect(shown).toHaveLength(2) // the provisioner, and its tests
    await writeFile(join(vendor, 'src', 'manual.ts'), shown.join('\n'))
    const { stdout } = await compile('--noEmit').catch((error) => error)
    await rm(join(vendor, 'src', 'manual.ts'))
    expect(stdout).toBe('')
  })

  it('PROV-17 the types know the declared parameters and reject mistakes', async () => {
    const wrong = `
      import { defineProvisioner, parameter } from 'stowage/provisioner'
      defineProvisioner({
        name: 'example.com/x',
        parameters: { tier: parameter.choice(['fast', 'slow'], { doc: 'd', default: 'slow' }) },
        async provision({ parameters, sizeBytes }) {
          const colour = parameters.colour
          const tier: number = parameters.tier
          return { sizeBytes, source: { hostPath: { path: '/x' } } }
        },
        async delete() {},
      })
      parameter.choice(['fast', 'slow'], { doc: 'd', default: 'warp' })
      const source: import('stowage/provisioner').VolumeSource = { hostPath: { path: '/x' }, nfs: { server: 's', path: '/' } }`
    await writeFile(join(vendor, 'src', 'wrong.ts'), wrong)
    const { stdout } = await compile('--noEmit').catch((error) => error)
    await rm(join(vendor, 'src', 'wrong.ts'))
    const lines = [...stdout.matchAll(/wrong\.ts\((\d+),/g)].map(([, line]) => Number(line))
    expect(new Set(lines)).toEqual(new Set([7, 8, 13, 14]))
  })

  it('PROV-17 reports bad flags in a sentence and exits with 2', async () => {
    const program = [join(vendor, 'dist', 'main.js')]
    const wrong = await run(process.execPath, [...program, '--worker-threads=many']).catch((error) => error)
    expect(wrong).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^example.com\/tiers: --worker-threads "many": expected/),
    })
    const env = { PATH: process.env.PATH }
    const lost = await run(process.execPath, program, { env, cwd: dir }).catch((error) => error)
    expect(lost).toMatchObject({ code: 2, stderr: expect.stringContaining('--kubeconfig or $KUBECONFIG') })
  })

  it('PROV-8 PROV-17 a call that never ends is reported on the claim and does not block the stop', async () => {
    const hanging = `
      import { defineProvisioner, runProvisioner } from 'stowage/provisioner'
      await runProvisioner(defineProvisioner({
        name: 'example.com/hanging',
        provision: () => new Promise(() => {}),
        delete: async () => {},
      }), { timeoutMs: 200, stopTimeoutMs: 1_500, httpEndpoint: '127.0.0.1:0' })`
    await writeFile(join(vendor, 'dist', 'hanging.js'), hanging)
    const provisioner = await startProvisioner({ program: 'dist/hanging.js' })
    await server.call('POST', CLASSES, { metadata: { name: 'hanging' }, provisioner: 'example.com/hanging' })
    await aClaim('stuck', 'hanging')
    const warning = await eventually('the event', async () =>
      (await eventsAbout('stuck')).find(({ reason }) => reason === 'ProvisioningFailed'),
    )
    expect(warning.message).toContain('did not finish within the timeout of 0.2 s')
    expect(provisioner.log()).toContain(
      '"msg":"provisioning a volume exceeds its time limit; waiting for the call to end"',
    )
    expect(await (await fetch(`${provisioner.url}/metrics`)).text()).toMatch(
      /controller_persistentvolumeclaim_provision_failed_total\{class="hanging",source=""\} 1/,
    )
    expect(await provisioner.end('SIGTERM')).toBe(1)
    expect(provisioner.log()).toContain('"waitingFor":["default/stuck"]')
    expect(provisioner.log()).toContain(
      '"msg":"stopped without waiting for work in progress; the next start resumes it"',
    )
    const { finalizers } = (await server.call('GET', `${CLAIMS}/stuck`)).json.metadata
    expect(finalizers).toContain('provisioning.stowage.dev/example.com-hanging')
  })

  describe('running beside a server', () => {
    let provisioner: RunningProvisioner
    beforeAll(async () => {
      provisioner = await startProvisioner()
      await apply('classes.yaml')
      await apply('claims.yaml')
    })
    afterAll(async () => {
      if (provisioner?.child.exitCode === null) await provisioner.end('SIGTERM')
    })

    it('PROV-11 provisions volumes with every required field', async () => {
      const volume = await bound('database')
      const { uid } = (await server.call('GET', `${CLAIMS}/database`)).json.metadata
      expect(volume).toMatchObject({
        metadata: {
          name: `pvc-${uid}`,
          annotations: { 'pv.kubernetes.io/provisioned-by': 'example.com/tiers' },
          labels: { 'example.com/tier': 'fast' },
        },
        spec: {
          storageClassName: 'fast',
          capacity: { storage: '2Gi' },
          accessModes: ['ReadWriteOnce'],
          persistentVolumeReclaimPolicy: 'Delete',
          claimRef: { namespace: 'default', name: 'database', uid },
          hostPath: { path: join(dir, 'fast', `pvc-${uid}`), type: 'Directory' },
        },
        status: { phase: 'Bound' },
      })
    })

    it('PROV-19 two classes of one provisioner create volumes on different disks', async () => {
      const [fast, slow] = [await bound('database'), await bound('backups')]
      expect(await volumesOn('fast')).toContain(fast.metadata.name)
      expect(await volumesOn('slow')).toContain(slow.metadata.name)
      expect(slow.spec.hostPath.path).toBe(join(dir, 'slow', slow.metadata.name))
    })

    it('PROV-11 satisfies a selector it supports', async () => {
      expect((await bound('scratch')).metadata.labels).toEqual({ 'example.com/tier': 'slow' })
    })

    it('PROV-10 rejects a selector it cannot satisfy with an event', async () => {
      const warning = await eventually('the event', async () =>
        (await eventsAbout('wrong')).find(({ reason }) => reason === 'ProvisioningFailed'),
      )
      expect(warning).toMatchObject({ type: 'Warning', source: { component: 'example.com/tiers' } })
      expect(warning.message).toContain('accepts no value of the label "example.com/tier"')
      expect(await readFile(join(ROOT, 'examples', 'provisioner', 'README.md'), 'utf8')).toContain(warning.message)
      expect((await server.call('GET', `${CLAIMS}/wrong`)).json.status.phase).toBe('Pending')
    })

    it('PROV-10 rejects unknown class parameters with an event', async () => {
      const parameters = { tier: 'fast', colour: 'red' }
      await server.call('POST', CLASSES, { metadata: { name: 'odd' }, provisioner: 'example.com/tiers', parameters })
      await aClaim('odd', 'odd')
      const warning = await eventually('the event', async () =>
        (await eventsAbout('odd')).find(({ reason }) => reason === 'ProvisioningFailed'),
      )
      expect(warning.message).toContain('does not know: "colour". It knows "tier", "reserve"')
    })

    it('PROV-14 deletes the volume and its directory with the claim', async () => {
      const { metadata } = await bound('scratch')
      await server.call('DELETE', `${CLAIMS}/scratch`)
      await gone(`${VOLUMES}/${metadata.name}`)
      expect(await volumesOn('slow')).not.toContain(metadata.name)
    })

    it('PROV-17 serves metrics and readiness', async () => {
      const ready = await fetch(`${provisioner.url}/readyz`)
      expect(ready.status).toBe(200)
      const metrics = await (await fetch(`${provisioner.url}/metrics`)).text()
      expect(metrics).toMatch(/controller_persistentvolumeclaim_provision_total\{class="fast",source=""\} 1/)
      expect(metrics).toMatch(/leader_election_master_status\{name="example.com\/tiers"\} 1/)
    })

    it('PROV-12 killed during provisioning, the next process completes, and no directory is left without a volume', async () => {
      const names = Array.from({ length: 30 }, (_, i) => `burst-${i}`)
      const created = names.map((name) => aClaim(name, 'slow'))
      await eventually('the first of them', async () => (await volumesOn('slow')).length > 3)
      await provisioner.end('SIGKILL')
      await Promise.all(created)
      const [half] = names
      await server.call('DELETE', `${CLAIMS}/${half}`)
      provisioner = await startProvisioner()
      for (const name of names.slice(1)) await bound(name)
      await gone(`${CLAIMS}/${half}`)
      await eventually('every directory to have its volume, and every volume its directory', async () => {
        const items = (await server.call('GET', VOLUMES)).json.items as any[]
        const known = items.filter(({ spec }) => spec.hostPath?.path.startsWith(join(dir, 'slow')))
        const expected = known.map(({ metadata }) => metadata.name).sort()
        return JSON.stringify((await volumesOn('slow')).sort()) === JSON.stringify(expected) && expected.length === 30
      })
    })

    it('PROV-17 on SIGTERM stops in order and releases its lease, so that a standby takes over at once', async () => {
      const standBy = await startProvisioner({ until: 'started' })
      await eventually('the stand-by to be ready', async () => (await fetch(`${standBy.url}/readyz`)).status === 200)
      expect(standBy.log()).not.toContain('"msg":"working"')
      expect(await provisioner.end('SIGTERM')).toBe(0)
      expect(provisioner.log()).toContain('"msg":"stopped"')
      provisioner = standBy
      await eventually('the stand-by to work', async () => standBy.log().includes('"msg":"working"'))
      await aClaim('late', 'fast')
      await bound('late')
    })
  })
})
