import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { findSockets } from './sockets.ts'

it('PLUS-8 findSockets finds the sockets of drivers that stowage up has started on its nodes', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'stowage-sockets-'))
  onTestFinished(() => rm(dataDir, { recursive: true }))
  const node = join(dataDir, 'nodes', 'node-1')
  await mkdir(join(node, 'agent'), { recursive: true })
  await mkdir(join(node, 'drivers', 'ended'), { recursive: true })
  const directory = join(node, 'drivers', 'hostpathplugin')
  await mkdir(directory)
  const address = join(directory, 'csi.sock')
  const server = createServer()
  onTestFinished(() => void server.close())
  await new Promise<void>((resolve) => server.listen(address, resolve))
  expect(await findSockets(dataDir, join(dataDir, 'no-kubelet'))).toEqual([{ address, nodeRoot: join(node, 'agent') }])
})
