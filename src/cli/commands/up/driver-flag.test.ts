import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseDriverFlags } from './driver-flag.ts'

describe('parseDriverFlags', () => {
  let dir: string
  const server = createServer()
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-flag-'))
    await writeFile(join(dir, 'driver'), '')
    await chmod(join(dir, 'driver'), 0o755)
    await writeFile(join(dir, 'notes.txt'), '')
    await new Promise<void>((listening) => server.listen(join(dir, 'plain'), listening))
  })
  afterAll(async () => {
    server.close()
    await rm(dir, { recursive: true })
  })
  const parse = (...driver: string[]) => parseDriverFlags({ driver: driver.map((text) => text.replace('DIR', dir)) })

  it.each([
    ['unix:///run/csi.sock', '/run/csi.sock'],
    ['unix:relative.sock', resolve('relative.sock')],
    ['/run/csi-{node}.sock', '/run/csi-{node}.sock'],
    ['DIR/plain', 'DIR/plain'], // exists and is a socket
  ])('recognizes %s as a socket', (text, path) => {
    expect(parse(text)).toEqual([{ is: 'socket', path: path.replace('DIR', dir) }])
  })

  it.each([
    ['my-driver', 'my-driver'],
    [' my-driver --endpoint {socket} ', 'my-driver --endpoint {socket}'],
    ['my-driver --endpoint unix:///run/csi.sock', 'my-driver --endpoint unix:///run/csi.sock'],
    ['DIR/driver', 'DIR/driver'], // exists and is executable
  ])('recognizes %s as a command', (text, command) => {
    expect(parse(text)).toEqual([{ is: 'command', command: command.replace('DIR', dir) }])
  })

  it('recognizes a command that is longer than a path can be', () => {
    const command = `my-driver ${'x'.repeat(5_000)}`
    expect(parse(command)).toEqual([{ is: 'command', command }])
  })

  it.each([
    ['', /expected a socket, or a command/],
    ['tcp://127.0.0.1:10000', /CSI drivers listen on Unix sockets/],
    ['unix://', /expected the path of a socket/],
    ['DIR', /is a directory/],
    ['DIR/notes.txt', /neither a socket nor executable/],
  ])('rejects %j with the reason', (text, message) => {
    expect(() => parse(text)).toThrow(message)
  })

  it('accepts --driver-socket as an alias, and omits repeated sockets', () => {
    const flags = { driver: ['/a.sock', 'cmd'], driverSocket: ['unix:///a.sock', '/b', 'b', 'unix:/b'] }
    expect(parseDriverFlags(flags)).toEqual([
      { is: 'socket', path: '/a.sock' },
      { is: 'command', command: 'cmd' },
      { is: 'socket', path: '/b' },
      { is: 'socket', path: resolve('b') },
    ])
  })
})
