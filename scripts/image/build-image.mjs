// `npm run image -- [FILE]`: assembles the image of the Dockerfile as an OCI image tarball without a container engine, by default
// dist/stowage-image.tar. The base is copied from this machine (base-files.mjs); /opt/stowage and the configuration are the same
// as in the Dockerfile. SOURCE_DATE_EPOCH sets the time of all files. Default: the time of the last commit.
import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { arch, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { copyBaseFiles } from './base-files.mjs'
import { readImageConfig } from './dockerfile.mjs'
import { writeOciTarball } from './oci-layout.mjs'
import { prepareTree } from './prepare-tree.mjs'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const ARCHITECTURES = { x64: 'amd64', arm64: 'arm64' }
/** The user of the image, who owns its data directory. */
const USER_ID = 65532

const file = resolve(process.argv[2] ?? join(ROOT, 'dist', 'stowage-image.tar'))
const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
const dir = await mkdtemp(join(tmpdir(), 'stowage-image-'))
try {
  const [base, program, state] = ['base', 'program', 'state'].map((name) => join(dir, name))
  const tree = join(program, 'opt', 'stowage')
  await prepareTree(tree)
  const missingPrograms = await copyBaseFiles(base, await listNativeModules(tree))
  await mkdir(join(state, 'var', 'lib', 'stowage'), { recursive: true })
  await chmod(join(state, 'var', 'lib', 'stowage'), 0o700)

  const digest = await writeOciTarball({
    file,
    tag: version,
    architecture: ARCHITECTURES[arch()] ?? arch(),
    created: Number(process.env.SOURCE_DATE_EPOCH ?? (await readGit(['log', '-1', '--format=%ct'])) ?? 0),
    config: readImageConfig(await readFile(join(ROOT, 'Dockerfile'), 'utf8'), {
      VERSION: version,
      REVISION: process.env.REVISION ?? (await readGit(['rev-parse', 'HEAD'])),
    }),
    layers: [
      { folder: base, owner: 0, comment: `Node.js ${process.version} and storage programs` },
      { folder: program, owner: 0, comment: `stowage ${version}` },
      { folder: state, paths: ['var/lib/stowage'], owner: USER_ID, comment: 'data directory' },
    ],
  })
  console.log(`${file} holds the image ${digest}.`)
  if (missingPrograms.length > 0) {
    console.log(
      `The image lacks ${missingPrograms.join(', ')}, as this machine does. Only drivers and nodes need them.`,
    )
  }
} finally {
  await rm(dir, { recursive: true, force: true })
}

async function listNativeModules(tree) {
  const names = await readdir(tree, { recursive: true })
  return names.filter((name) => name.endsWith('.node')).map((name) => join(tree, name))
}

async function readGit(args) {
  const result = await promisify(execFile)('git', args, { cwd: ROOT }).catch(() => undefined)
  return result?.stdout.trim() || undefined
}
