// Tests the example of docs/tutorial/provisioners.md: a package that depends on the packed SDK, is compiled against its types,
// and runs in its own process against a server.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { buildProgram } from './helpers/build-program.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const ROOT = new URL('..', import.meta.url).pathname
const COMPILER = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const VOLUMES = '/api/v1/persistentvolumes'
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses'
const LEASE_NAMESPACE = 'kube-system'

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

/** Copies the example and installs its dependencies: the packed SDK, and links to the packages that its compilation needs. */
async function installExample(targetDir: string): Promise<string> {
  await buildProgram()
  await cp(join(ROOT, 'examples', 'provisioner'), targetDir, {
    recursive: true,
    filter: (path) => !/\/(node_modules|dist|volumes)$/.test(path),
  })
  await mkdir(join(targetDir, 'node_modules', '@types'), { recursive: true })
  const sdk = join(targetDir, 'node_modules', '@stowage', 'provisioner')
  await mkdir(sdk, { recursive: true })
  const packFlags = ['pack', '--silent', '--pack-destination', dir]
  const { stdout } = await run('npm', packFlags, { cwd: join(ROOT, 'dist', 'packages', 'provisioner') })
  await run('tar', ['-xzf', join(dir, stdout.trim()), '-C', sdk, '--strip-components=1'])
  for (const name of ['@types/node', 'undici-types']) {
    await symlink(join(ROOT, 'node_modules', name), join(targetDir, 'node_modules', name))
  }
  return targetDir
}

const compile = (...flags: string[]) => run(process.execPath, [COMPILER, ...flags], { cwd: vendor })

interface RunningProvisioner {
  readonly child: ChildProcess
  readonly url: string
  log(): string
  end(signal: NodeJS.Signals): Promise<number | null>
}

/** Starts the provisioner. Resolves when it logs the message. */
async function startProvisioner({ message = 'working', program = 'dist/main.js' } = {}): Promise<RunningProvisioner> {
  const flags = ['--kubeconfig', server.kubeconfig, '--http-endpoint', '127.0.0.1:0', '--retry-interval-start', '100ms']
  const roots = { FAST_ROOT: join(dir, 'fast'), SLOW_ROOT: join(dir, 'slow') }
  const env = { ...process.env, ...roots, NAMESPACE: LEASE_NAMESPACE }
  const child = spawn(process.execPath, [program, ...flags], {
    cwd: vendor,
    env,
    stdio: ['ignore', 'inherit', 'pipe'],
  })
  const exit = once(child, 'exit')
  let log = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    log += text
  })
  const findLogLine = (text: string) => log.split('\n').find((line) => line.includes(`"msg":"${text}"`))
  await waitFor(`the provisioner to log "${message}"`, async () => {
    if (child.exitCode !== null) throw new Error(`the provisioner exited early:\n${log}`)
    return findLogLine(message)
  })
  return {
    child,
    url: JSON.parse(findLogLine('started')!).monitoring,
    log: () => log,
    async end(signal) {
      child.kill(signal)
      return (await exit)[0]
    },
  }
}

/** Polls until the result is truthy, and returns it. */
async function waitFor<T>(description: string, poll: () => Promise<T | undefined | false>): Promise<T> {
  for (let attempts = 0; attempts < 2_000; attempts++) {
    const result = await poll()
    if (result) return result
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  throw new Error(`timed out waiting for ${description}`)
}

async function apply(manifest: string): Promise<void> {
  for (const document of parseAllDocuments(await readFile(join(vendor, 'manifests', manifest), 'utf8'))) {
    const object = document.toJSON()
    const { status, text } = await server.call('POST', object.kind === 'StorageClass' ? CLASSES : CLAIMS, object)
    expect(status, text).toBe(201)
  }
}
const createClaim = (name: string, storageClassName: string, fields: object = {}) =>
  server.call('POST', CLAIMS, {
    metadata: { name },
    spec: { storageClassName, accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } }, ...fields },
  })
const waitUntilBound = (name: string) =>
  waitFor(`the claim ${name} to be bound`, async () => {
    const claim = (await server.call('GET', `${CLAIMS}/${name}`)).json
    return claim.status?.phase === 'Bound' && (await server.call('GET', `${VOLUMES}/${claim.spec.volumeName}`)).json
  })
const waitUntilDeleted = (path: string) =>
  waitFor(`${path} to be deleted`, async () => (await server.call('GET', path)).status === 404)
const listVolumesOn = async (tier: string) => (await readdir(join(dir, tier))).filter((name) => !name.startsWith('.'))
const listEvents = async (name: string) => {
  const query = new URLSearchParams({ fieldSelector: `involvedObject.name=${name}` })
  return (await server.call('GET', `/api/v1/namespaces/default/events?${query}`)).json.items as any[]
}

describe('example provisioner', () => {
  it('PROV-17 compiles against the published types with skipLibCheck off, and its own unit tests pass', async () => {
    await compile()
    const { stdout } = await run(process.execPath, ['--test', '--test-reporter=tap', 'dist/tiers.test.js'], {
      cwd: vendor,
    })
    expect(stdout).toMatch(/# pass [1-9]/)
    expect(stdout).toMatch(/# fail 0/)
  })

  it('PROV-17 compiles the code in the tutorial', async () => {
    const tutorial = await readFile(join(ROOT, 'docs', 'tutorial', 'provisioners.md'), 'utf8')
    const codeBlocks = [...tutorial.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code)
    expect(codeBlocks).toHaveLength(3) // the provisioner, attributes, and tests
    expect(codeBlocks[0]).toMatch(/source: \{ (hostPath|local|csi): /) // sources that the nodes of Stowage mount
    await writeFile(join(vendor, 'src', 'manual.ts'), codeBlocks.join('\n'))
    const { stdout } = await compile('--noEmit').catch((error) => error)
    await rm(join(vendor, 'src', 'manual.ts'))
    expect(stdout).toBe('')
  })

  it('PROV-17 has types that reject undeclared parameters and wrong values', async () => {
    const invalidCode = `
      import { defineProvisioner, parameter } from '@stowage/provisioner'
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
      const source: import('@stowage/provisioner').VolumeSource = { hostPath: { path: '/x' }, nfs: { server: 's', path: '/' } }`
    await writeFile(join(vendor, 'src', 'wrong.ts'), invalidCode)
    const { stdout } = await compile('--noEmit').catch((error) => error)
    await rm(join(vendor, 'src', 'wrong.ts'))
    const lines = [...stdout.matchAll(/wrong\.ts\((\d+),/g)].map(([, line]) => Number(line))
    expect(new Set(lines)).toEqual(new Set([7, 8, 13, 14]))
  })

  it('PROV-17 reports an invalid flag and a missing kubeconfig, and exits with 2', async () => {
    const program = [join(vendor, 'dist', 'main.js')]
    const rejectedResult = await run(process.execPath, [...program, '--worker-threads=many']).catch((error) => error)
    expect(rejectedResult).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^example.com\/tiers: --worker-threads "many": expected/),
    })
    const env = { PATH: process.env.PATH }
    const unconfiguredResult = await run(process.execPath, program, { env, cwd: dir }).catch((error) => error)
    expect(unconfiguredResult).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--kubeconfig or $KUBECONFIG'),
    })
  })

  it('PROV-8 PROV-17 reports a call that never ends in an event on the claim, and stops without waiting for it', async () => {
    const hangingProgram = `
      import { defineProvisioner, runProvisioner } from '@stowage/provisioner'
      await runProvisioner(defineProvisioner({
        name: 'example.com/hanging',
        provision: () => new Promise(() => {}),
        delete: async () => {},
      }), { timeoutMs: 200, stopTimeoutMs: 1_500, httpEndpoint: '127.0.0.1:0' })`
    await writeFile(join(vendor, 'dist', 'hanging.js'), hangingProgram)
    const provisioner = await startProvisioner({ program: 'dist/hanging.js' })
    await server.call('POST', CLASSES, { metadata: { name: 'hanging' }, provisioner: 'example.com/hanging' })
    await createClaim('stuck', 'hanging')
    const warning = await waitFor('the event', async () =>
      (await listEvents('stuck')).find(({ reason }) => reason === 'ProvisioningFailed'),
    )
    expect(warning.message).toContain('did not finish within the timeout of 0.2 s')
    expect(provisioner.log()).toContain(
      '"msg":"provisioning a volume exceeds its timeout; waiting for the call to return"',
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

  describe('with a server', () => {
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
      const volume = await waitUntilBound('database')
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

    it('PROV-19 provisions two classes on different disks', async () => {
      const [fastVolume, slowVolume] = [await waitUntilBound('database'), await waitUntilBound('backups')]
      expect(await listVolumesOn('fast')).toContain(fastVolume.metadata.name)
      expect(await listVolumesOn('slow')).toContain(slowVolume.metadata.name)
      expect(slowVolume.spec.hostPath.path).toBe(join(dir, 'slow', slowVolume.metadata.name))
    })

    it('PROV-11 satisfies a supported selector', async () => {
      expect((await waitUntilBound('scratch')).metadata.labels).toEqual({ 'example.com/tier': 'slow' })
    })

    it('PROV-10 reports a selector that it cannot satisfy in an event', async () => {
      const warning = await waitFor('the event', async () =>
        (await listEvents('wrong')).find(({ reason }) => reason === 'ProvisioningFailed'),
      )
      expect(warning).toMatchObject({ type: 'Warning', source: { component: 'example.com/tiers' } })
      expect(warning.message).toContain('accepts no value of the label "example.com/tier"')
      expect(await readFile(join(ROOT, 'examples', 'provisioner', 'README.md'), 'utf8')).toContain(warning.message)
      expect((await server.call('GET', `${CLAIMS}/wrong`)).json.status.phase).toBe('Pending')
    })

    it('PROV-10 reports unknown class parameters in an event', async () => {
      const parameters = { tier: 'fast', colour: 'red' }
      await server.call('POST', CLASSES, { metadata: { name: 'odd' }, provisioner: 'example.com/tiers', parameters })
      await createClaim('odd', 'odd')
      const warning = await waitFor('the event', async () =>
        (await listEvents('odd')).find(({ reason }) => reason === 'ProvisioningFailed'),
      )
      expect(warning.message).toContain('does not support: "colour". The provisioner supports "tier", "reserve"')
    })

    it('PROV-17 expands a volume to the size that its claim requests', async () => {
      const { metadata } = await waitUntilBound('database')
      const body = { spec: { resources: { requests: { storage: '3Gi' } } } }
      const headers = { 'content-type': 'application/merge-patch+json' }
      expect((await server.call('PATCH', `${CLAIMS}/database`, body, headers)).status).toBe(200)
      await waitFor('the expanded claim', async () => {
        const { status } = (await server.call('GET', `${CLAIMS}/database`)).json
        return status.capacity.storage === '3Gi'
      })
      expect((await server.call('GET', `${VOLUMES}/${metadata.name}`)).json.spec.capacity.storage).toBe('3Gi')
      expect(await readFile(join(dir, 'fast', `.${metadata.name}.size`), 'utf8')).toBe(`${3n * 1024n ** 3n}`)
    })

    it('PROV-17 elects its leader in $NAMESPACE', async () => {
      const leases = `/apis/coordination.k8s.io/v1/namespaces/${LEASE_NAMESPACE}/leases`
      expect((await server.call('GET', `${leases}/example.com-tiers`)).json.spec.holderIdentity).not.toBe('')
    })

    it('PROV-14 deletes the volume and its directory with the claim', async () => {
      const { metadata } = await waitUntilBound('scratch')
      await server.call('DELETE', `${CLAIMS}/scratch`)
      await waitUntilDeleted(`${VOLUMES}/${metadata.name}`)
      expect(await listVolumesOn('slow')).not.toContain(metadata.name)
    })

    it('PROV-17 serves metrics and readiness', async () => {
      const readyResponse = await fetch(`${provisioner.url}/readyz`)
      expect(readyResponse.status).toBe(200)
      const metrics = await (await fetch(`${provisioner.url}/metrics`)).text()
      expect(metrics).toMatch(/controller_persistentvolumeclaim_provision_total\{class="fast",source=""\} 1/)
      expect(metrics).toMatch(/leader_election_master_status\{name="example.com\/tiers"\} 1/)
    })

    it('PROV-12 completes provisioning after a kill, and leaves no directory without a volume', async () => {
      const names = Array.from({ length: 30 }, (_, i) => `burst-${i}`)
      const creations = names.map((name) => createClaim(name, 'slow'))
      await waitFor('the first volumes', async () => (await listVolumesOn('slow')).length > 3)
      await provisioner.end('SIGKILL')
      await Promise.all(creations)
      const [interruptedName] = names
      await server.call('DELETE', `${CLAIMS}/${interruptedName}`)
      provisioner = await startProvisioner()
      for (const name of names.slice(1)) await waitUntilBound(name)
      await waitUntilDeleted(`${CLAIMS}/${interruptedName}`)
      await waitFor('the directories to match the volumes', async () => {
        const items = (await server.call('GET', VOLUMES)).json.items as any[]
        const tierVolumes = items.filter(({ spec }) => spec.hostPath?.path.startsWith(join(dir, 'slow')))
        const expectedNames = tierVolumes.map(({ metadata }) => metadata.name).sort()
        return (
          JSON.stringify((await listVolumesOn('slow')).sort()) === JSON.stringify(expectedNames) &&
          expectedNames.length === 30
        )
      })
    })

    it('PROV-17 exits with 0 on SIGTERM, and a standby takes over', async () => {
      const standby = await startProvisioner({ message: 'started' })
      await waitFor('the standby to be ready', async () => (await fetch(`${standby.url}/readyz`)).status === 200)
      expect(standby.log()).not.toContain('"msg":"working"')
      expect(await provisioner.end('SIGTERM')).toBe(0)
      expect(provisioner.log()).toContain('"msg":"stopped"')
      provisioner = standby
      await waitFor('the standby to lead', async () => standby.log().includes('"msg":"working"'))
      await createClaim('late', 'fast')
      await waitUntilBound('late')
    })
  })
})
