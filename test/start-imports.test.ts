// Checks which packages a start loads: every command evaluates the flags of all commands, and a server is ready before it loads
// its controllers and nodes. A static import that is not a type import would load them earlier and slow down every start.
import { fileURLToPath } from 'node:url'
import { build, type Metafile } from 'esbuild'
import { beforeAll, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

let inputs: Metafile['inputs']
beforeAll(async () => {
  const entryPoints = ['src/main.ts']
  const options = { bundle: true, platform: 'node', format: 'esm', packages: 'external' } as const
  const { metafile } = await build({ ...options, absWorkingDir: ROOT, entryPoints, metafile: true, write: false })
  inputs = metafile.inputs
})

/** Returns the packages that a module and its imports load, without those of `await import()`. */
function packagesOf(entry: string): Set<string> {
  const packages = new Set<string>()
  const files = new Set([entry])
  for (const file of files) {
    for (const { path, kind, external } of inputs[file]!.imports) {
      if (kind === 'dynamic-import') continue
      if (external) packages.add(path)
      else files.add(path)
    }
  }
  return packages
}

it('the command line loads neither gRPC nor the store nor metrics', () => {
  const packages = packagesOf('src/main.ts')
  expect(packages).toContain('commander')
  for (const name of ['@grpc/grpc-js', '@bufbuild/protobuf', 'lmdb', 'prom-client', 'yaml', 'ws']) {
    expect(packages).not.toContain(name)
  }
})

it('a server is ready without gRPC', () => {
  const packages = packagesOf('src/processes/server/serve.ts')
  expect(packages).toContain('lmdb')
  expect(packages).not.toContain('@grpc/grpc-js')
  expect(packagesOf('src/processes/server/components.ts')).toContain('@grpc/grpc-js')
})
