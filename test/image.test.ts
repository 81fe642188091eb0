// Tests the image: `npm run image` assembles it from a copy of the sources, and the program in it runs in a chroot with a
// read-only root. The tests have no container engine, so they compare the Dockerfile with the image instead of building it.
import { execFile, execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chown, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { bindDirectoryClaim } from './helpers/directory-claim.ts'
import { copyRepository } from './helpers/repository-copy.ts'
import { startServer } from './helpers/server.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const USER_ID = 65532
/** The build installs packages, and compresses 150 MB. */
const BUILD_TIMEOUT_MS = 300_000
const run = promisify(execFile)
const mountSkipReason = skipReason(await probeThisMachine(), ['mount'])

let dir: string
let layout: string
let manifest: { config: Descriptor; layers: Descriptor[] }
let image: { config: any; rootfs: { diff_ids: string[] } }
let version: string

interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
}

const readBlob = ({ digest }: Pick<Descriptor, 'digest'>) =>
  readFile(join(layout, 'blobs', 'sha256', digest.slice('sha256:'.length)))
const readJsonBlob = async (descriptor: Pick<Descriptor, 'digest'>) =>
  JSON.parse((await readBlob(descriptor)).toString('utf8'))
const digestOf = (content: Buffer) => `sha256:${createHash('sha256').update(content).digest('hex')}`

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-image-test-'))
  const copy = join(dir, 'repository')
  await copyRepository(copy)
  for (const name of ['bench', 'test']) await rm(join(copy, name), { recursive: true }) // the Dockerfile does not copy them either
  version = JSON.parse(await readFile(join(copy, 'package.json'), 'utf8')).version
  const tarball = join(dir, 'image.tar')
  const env = { ...process.env, REVISION: 'abc', SOURCE_DATE_EPOCH: '1700000000' }
  await run(process.execPath, [join(copy, 'scripts', 'image', 'build-image.mjs'), tarball], { env })
  layout = join(dir, 'layout')
  await mkdir(layout)
  await run('tar', ['-xf', tarball, '-C', layout])
  const index = JSON.parse(await readFile(join(layout, 'index.json'), 'utf8'))
  manifest = await readJsonBlob(index.manifests[0])
  image = await readJsonBlob(manifest.config)
}, BUILD_TIMEOUT_MS)
afterAll(() => rm(dir, { recursive: true, force: true }))

describe('image', () => {
  it('SYS-24 is an OCI image layout whose digests and sizes match', async () => {
    expect(JSON.parse(await readFile(join(layout, 'oci-layout'), 'utf8'))).toEqual({ imageLayoutVersion: '1.0.0' })
    for (const descriptor of [manifest.config, ...manifest.layers]) {
      const content = await readBlob(descriptor)
      expect(descriptor).toMatchObject({ digest: digestOf(content), size: content.length })
    }
    const diffIds = await Promise.all(manifest.layers.map(async (layer) => digestOf(gunzipSync(await readBlob(layer)))))
    expect(image.rootfs.diff_ids).toEqual(diffIds)
  })

  it('SYS-24 has the configuration of the Dockerfile: an unprivileged user, the program and labels', async () => {
    expect(image.config).toMatchObject({
      User: `${USER_ID}:${USER_ID}`,
      Entrypoint: ['/opt/stowage/bin/stowage'],
      Cmd: ['--help'],
      Labels: {
        'org.opencontainers.image.title': 'Stowage',
        'org.opencontainers.image.licenses': 'Apache-2.0',
        'org.opencontainers.image.version': version,
        'org.opencontainers.image.revision': 'abc',
      },
    })
    expect(image.config.Env).toContain('XDG_DATA_HOME=/var/lib')
    const dockerfile = await readFile(join(ROOT, 'Dockerfile'), 'utf8')
    expect(dockerfile).toMatch(/^ARG NODE_IMAGE=node:\d+\.\d+\.\d+-/m)
    expect(dockerfile).toContain('node scripts/image/prepare-tree.mjs /tree')
    expect(dockerfile).toContain('COPY --from=build /tree /opt/stowage')
  })

  it('SYS-24 gives the build stage of the Dockerfile every file that the build reads', async () => {
    const ignoreLines = (await readFile(join(ROOT, '.dockerignore'), 'utf8')).split('\n')
    const includedNames = ignoreLines.filter((line) => line.startsWith('!')).map((line) => line.slice(1))
    const neededNames = await readdir(join(dir, 'repository'))
    const isBuiltOrConfigured = (name: string) => ['dist', 'node_modules', 'Dockerfile'].includes(name)
    expect(includedNames.sort()).toEqual(neededNames.filter((name) => !isBuiltOrConfigured(name)).sort())
  })

  describe.skipIf(mountSkipReason)(`unpacked${mountSkipReason ? ` (skipped: ${mountSkipReason})` : ''}`, () => {
    let root: string
    let dataDir: string
    beforeAll(async () => {
      root = join(dir, 'root')
      dataDir = join(dir, 'data')
      await mkdir(root)
      await mkdir(dataDir)
      await chown(dataDir, USER_ID, USER_ID)
      for (const layer of manifest.layers) {
        execFileSync('tar', ['-xzf', '-', '-C', root], { input: await readBlob(layer) })
      }
    })

    /** Returns the command that runs the image as a runtime does: as its user, on a read-only root, with a data volume. */
    const commandInImage = (): [string, ...string[]] => {
      const script = `
        root=$1 data=$2 user=$3
        shift 3
        mount --bind "$root" "$root"
        mount --rbind /proc "$root/proc"
        mount --rbind /dev "$root/dev"
        mount --bind "$data" "$root/var/lib/stowage"
        mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
        mount -o remount,bind,ro "$root"
        exec chroot --userspec="$user" "$root" "$@"`
      const { User, Entrypoint } = image.config
      return ['unshare', '--mount', 'sh', '-ec', script, 'sh', root, dataDir, User, ...Entrypoint]
    }
    const env = (): Record<string, string> =>
      Object.fromEntries((image.config.Env as string[]).map((pair) => pair.split(/=(.*)/s) as [string, string]))

    it('SYS-24 has the program, its dependencies and a bill of materials that lists them', async () => {
      const tree = join(root, 'opt', 'stowage')
      expect(await readdir(tree)).toEqual(expect.arrayContaining(['bin', 'dist', 'docs', 'LICENSE', 'node_modules']))
      const { bomFormat, components, metadata } = JSON.parse(await readFile(join(tree, 'sbom.cdx.json'), 'utf8'))
      expect(bomFormat).toBe('CycloneDX')
      expect(metadata.component).toMatchObject({ name: 'stowage', version })
      const names = components.map(({ group, name }: any) => (group ? `${group}/${name}` : name))
      const { dependencies, devDependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
      expect(names).toEqual(expect.arrayContaining(Object.keys(dependencies)))
      const developmentNames = Object.keys(devDependencies).filter((name) => !name.startsWith('@types/'))
      expect(names.filter((name: string) => developmentNames.includes(name))).toEqual([])
    })

    it('SYS-24 runs its program in a chroot with a read-only root: version, up, a bound claim, stop', async () => {
      const [file, ...args] = commandInImage()
      const { stdout } = await run(file, [...args, 'version'], { env: env() })
      expect(stdout).toMatch(`stowage ${version} (`)

      const server = await startServer({
        dataDir: '/var/lib/stowage',
        pkiDir: join(dataDir, 'pki'),
        executable: commandInImage(),
        env: env(),
      })
      try {
        const status = await readFile(`/proc/${server.pid}/status`, 'utf8')
        expect(status).toMatch(new RegExp(`^Uid:\\t${USER_ID}\\t`, 'm'))
        await bindDirectoryClaim(server, 'data')
        expect(await readdir(join(dataDir, 'volumes'))).toContainEqual(expect.stringMatching(/^pvc-/))
      } finally {
        expect(await server.stop()).toBe(0)
      }
    })
  })
})
