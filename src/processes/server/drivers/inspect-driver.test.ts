import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../base/clock.ts'
import { silentLog } from '../../../base/log.ts'
import type { Identity, Node } from '../../../csi/gen/csi_pb.js'
import { CsiError, connectDriver, type ServiceHandlers } from '../../../csi/index.ts'
import { type SocketFixture, startSocketFixture } from '../../../csi/socket.fixture.ts'
import { findNameProblem, inspectDriver, NotListeningError, readSocketId } from './inspect-driver.ts'

const { signal } = new AbortController()

describe('inspectDriver', () => {
  let fixture: SocketFixture
  const inspect = () => inspectDriver(fixture.driver, fixture.path, signal)
  beforeEach(async () => {
    fixture = await startSocketFixture()
  })
  afterEach(() => fixture.remove())

  const fail = (code: 'UNAVAILABLE' | 'UNIMPLEMENTED' | 'FAILED_PRECONDITION', message: string) => async () => {
    throw new CsiError(code, message)
  }
  const nodeService = (info: object): Partial<ServiceHandlers<typeof Node>> => ({
    nodeGetCapabilities: async () => ({ capabilities: [] }),
    nodeGetInfo: async () => info,
  })

  it('SYS-6 returns the capabilities and the node of a driver', async () => {
    const topology = { accessibleTopology: { segments: { 'x/node': 'a' } } }
    await fixture.serve({ node: nodeService({ nodeId: 'a', maxVolumesPerNode: 7n, ...topology }) })
    const { facts, node, notes } = await inspect()
    expect(facts).toMatchObject({ name: 'test.example.com', version: '1' })
    expect([node, notes]).toEqual([{ id: 'a', segments: { 'x/node': 'a' }, maxVolumes: 7 }, []])
  })

  it('adds a note for each missing feature that CSI requires or that pods need', async () => {
    await fixture.serve({ identity: { getPluginInfo: async () => ({ name: 'a.b' }) } })
    expect((await inspect()).notes).toEqual([
      expect.stringContaining('no vendor_version'),
      expect.stringContaining('no Node service'),
    ])
  })

  it('SYS-6 accepts an older driver without Probe or GetPluginCapabilities', async () => {
    const unimplemented = fail('UNIMPLEMENTED', 'unknown method')
    await fixture.serve({
      identity: { probe: unimplemented, getPluginCapabilities: unimplemented },
      node: nodeService({ nodeId: 'a' }),
    })
    expect(await inspect()).toMatchObject({ node: { id: 'a' }, notes: [] })
  })

  const identityProblems: [string, Partial<ServiceHandlers<typeof Identity>>, RegExp][] = [
    [
      'without Identity',
      { getPluginInfo: fail('UNIMPLEMENTED', 'unknown service') },
      /does not implement csi\.v1\.Identity.*CSI 0\.x/,
    ],
    [
      'that fails GetPluginInfo',
      { getPluginInfo: fail('UNAVAILABLE', 'no version') },
      /GetPluginInfo failed.*Unavailable desc = no version/,
    ],
    ['without a name', { getPluginInfo: async () => ({ name: '' }) }, /returns no name/],
    ['with a long name', { getPluginInfo: async () => ({ name: 'x'.repeat(64) }) }, /64 characters; CSI allows 63/],
    ['that is not ready', { probe: async () => ({ ready: false }) }, /Probe reports that the driver is not ready/],
    ['that fails Probe', { probe: fail('FAILED_PRECONDITION', 'no disk') }, /Probe failed.*no disk/],
  ]
  it.each(identityProblems)('explains the problem of a driver %s', async (_name, identity, message) => {
    const served = { getPluginInfo: identity.getPluginInfo }
    if (identity.getPluginInfo) {
      // The fixture reads the name before it listens.
      let isFirst = true
      served.getPluginInfo = async (request, call) => {
        if (!isFirst) return identity.getPluginInfo!(request, call)
        isFirst = false
        return { name: 'first' }
      }
    }
    await fixture.serve({
      identity: { ...identity, ...(served.getPluginInfo ? { getPluginInfo: served.getPluginInfo } : {}) },
    })
    await expect(inspect()).rejects.toThrow(message)
  })

  it.each([
    ['without an ID', { nodeId: '' }, /empty node_id/],
    ['with a long ID', { nodeId: 'x'.repeat(193) }, /node_id of 193 bytes; a CSINode can hold 192/],
    ['with a negative limit', { nodeId: 'a', maxVolumesPerNode: -1n }, /must not be negative/],
  ])('explains the problem of a node %s', async (_name, info, message) => {
    await fixture.serve({ node: nodeService(info) })
    await expect(inspect()).rejects.toThrow(message)
  })

  it('explains a Node service without NodeGetInfo', async () => {
    const capabilities = [{ type: { case: 'rpc' as const, value: { type: 1 } } }]
    await fixture.serve({ node: { nodeGetCapabilities: async () => ({ capabilities }) } })
    await expect(inspect()).rejects.toThrow(/Implement NodeGetInfo/)
  })
})

describe('a socket that is not a driver', () => {
  let dir: string
  let path: string
  let server: Server | undefined
  const connections = new Set<Socket>()
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-inspect-'))
    path = join(dir, 'csi.sock')
  })
  afterEach(async () => {
    for (const connection of connections) connection.destroy()
    server?.close()
    server = undefined
    await rm(dir, { recursive: true })
  })
  const listen = (onConnection: (socket: Socket) => void) =>
    new Promise<void>((resolve) => {
      server = createServer((socket) => {
        connections.add(socket)
        socket.on('error', () => {})
        onConnection(socket)
      }).listen(path, resolve)
    })
  const inspect = async (timeoutMs = 5_000) => {
    const driver = connectDriver({ address: path, clock: systemClock(), log: silentLog, timeoutMs })
    return inspectDriver(driver, path, signal).finally(() => driver.close())
  }

  it('explains a missing path and a file that is not a socket', async () => {
    await expect(readSocketId(path)).rejects.toThrow(NotListeningError)
    await expect(readSocketId(path)).rejects.toThrow(`there is no socket at ${path}`)
    await writeFile(path, '')
    await expect(readSocketId(path)).rejects.toThrow('is not a socket')
    await rm(path)
    await expect(inspect()).rejects.toThrow(/cannot connect to .* \(ENOENT\)/)
  })

  it.each([
    ['answers nonsense', (socket: Socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')],
    ['closes the connection', (socket: Socket) => void socket.destroy()],
  ])('explains a process that %s', async (_name, onConnection) => {
    await listen(onConnection)
    await expect(inspect()).rejects.toThrow(/does not speak gRPC$/)
  })

  it('explains a process that accepts connections but does not respond', async () => {
    await listen(() => {})
    await expect(inspect(50)).rejects.toThrow(/accepts connections, but does not respond to GetPluginInfo/)
  })
})

it.each([
  ['no problem', 'hostpath.csi.k8s.io', undefined],
  ['no problem', 'x'.repeat(63), undefined],
  ['a problem', 'Driver.Example.com', /no CSIDriver or StorageClass can exist/],
  ['a problem', 'a b', /no CSIDriver/],
  ['a problem', '', /returns no name/],
])('findNameProblem returns %s for the name %j', (_result, name, message) => {
  const problem = findNameProblem(name)
  if (message) expect(problem).toMatch(message)
  else expect(problem).toBeUndefined()
})
