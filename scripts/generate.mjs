// Generates the messages of every src/**/proto/*.proto, offline, with the buf that npm installs. Writes JavaScript with
// declarations to `gen` next to `proto`, because the project does not use TypeScript enums. The generated files are committed.

import { execFileSync } from 'node:child_process'
import { readdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'

const root = new URL('..', import.meta.url).pathname
const protoFiles = (await readdir(join(root, 'src'), { recursive: true })).filter((name) => name.endsWith('.proto'))

for (const proto of new Set(protoFiles.map(dirname))) {
  const out = join('src', dirname(proto), 'gen')
  await rm(join(root, out), { recursive: true, force: true })
  const template = {
    version: 'v2',
    plugins: [{ local: 'protoc-gen-es', out, opt: ['target=js+dts', 'import_extension=js'] }],
  }
  run('buf', ['generate', join('src', proto), '--template', JSON.stringify(template)])
}

function run(command, args) {
  const bin = join(root, 'node_modules', '.bin')
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` }
  execFileSync(join(bin, command), args, { cwd: root, stdio: 'inherit', env })
}
