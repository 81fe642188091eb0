import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { systemClock } from '../../base/clock.ts'
import type { TerminalSize } from '../commands/terminal.ts'
import { type CommandStreams, exitResult, successResult } from './command-streams.ts'
import { websocketStreams } from './websocket-streams.ts'

const ALL_STREAMS = { stdin: true, stdout: true, stderr: true, tty: false }

let server: WebSocketServer
let url: string
let nextStreams: Promise<CommandStreams>

beforeEach(async () => {
  const http = createServer()
  server = new WebSocketServer({ server: http, maxPayload: 1024 * 1024, autoPong: false })
  nextStreams = new Promise((resolve) => {
    server.on('connection', (socket) => resolve(websocketStreams(socket, ALL_STREAMS, systemClock())))
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  url = `ws://127.0.0.1:${(http.address() as AddressInfo).port}`
  server.on('close', () => http.close())
})
afterEach(() => {
  for (const client of server.clients) client.terminate()
  server.close()
})

async function connect(protocol?: string) {
  const client = new WebSocket(url, protocol ? [protocol] : [])
  const messages: Buffer[] = []
  client.on('message', (data: Buffer) => messages.push(data))
  const closed = new Promise<number>((resolve) => client.on('close', resolve))
  await new Promise((resolve) => client.on('open', resolve))
  return { client, messages, closed, streams: await nextStreams }
}

describe('WebSocket streams of a command', () => {
  it('SYS-26 open the stdout channel, send the status after the output, and close normally', async () => {
    const { messages, closed, streams } = await connect('v5.channel.k8s.io')
    streams.stdout!.write('out')
    streams.stderr!.write('err')
    await streams.finish(exitResult(7))
    expect(await closed).toBe(1000)
    const [first, ...rest] = messages
    expect([...first!]).toEqual([1])
    expect(rest.slice(0, 2).map(String)).toEqual(['\u0001out', '\u0002err'])
    expect(rest[2]![0]).toBe(3)
    expect(JSON.parse(rest[2]!.subarray(1).toString())).toMatchObject({
      status: 'Failure',
      reason: 'NonZeroExitCode',
      details: { causes: [{ reason: 'ExitCode', message: '7' }] },
    })
  })

  it('SYS-26 answer a ping of the client', async () => {
    const { client } = await connect('v5.channel.k8s.io')
    const pong = once(client, 'pong')
    client.ping('alive')
    expect(String((await pong)[0])).toBe('alive')
  })

  it('SYS-26 end stdin when a v5 client sends the close signal', async () => {
    const { client, streams } = await connect('v5.channel.k8s.io')
    client.send(Buffer.from('\u0000input'))
    client.send(Buffer.from([0xff, 0]))
    expect(await text(streams.stdin!)).toBe('input')
  })

  it('SYS-26 read base64 text and resize messages', async () => {
    const { client, messages, streams } = await connect('v4.base64.channel.k8s.io')
    const sizes: TerminalSize[] = []
    streams.onResize((size) => sizes.push(size))
    client.send(`4${Buffer.from('{"Width":80,"Height":24}').toString('base64')}`)
    client.send(`0${Buffer.from('hi').toString('base64')}`)
    expect(String(await new Promise((resolve) => streams.stdin!.once('data', resolve)))).toBe('hi')
    expect(sizes).toEqual([{ columns: 80, rows: 24 }])
    streams.stdout!.write('out')
    await expect.poll(() => messages.map(String)).toContain(`1${Buffer.from('out').toString('base64')}`)
  })

  it('SYS-26 send no status for a success in the first version of the protocol', async () => {
    const { messages, streams } = await connect()
    await streams.finish(successResult)
    expect(messages.map(String)).toEqual(['\u0001'])
  })

  it('SYS-26 stop receiving while stdin is not read', async () => {
    const { client, streams } = await connect('v4.channel.k8s.io')
    const chunk = Buffer.alloc(32 * 1024)
    for (let index = 0; index < 1_000; index++) client.send(chunk)
    await expect.poll(() => streams.stdin!.readableLength).toBeGreaterThan(256 * 1024)
    await expect.poll(() => [...server.clients].every(({ isPaused }) => isPaused)).toBe(true)
    expect(streams.stdin!.readableLength).toBeLessThan(512 * 1024)
    expect(client.bufferedAmount).toBeGreaterThan(0)
  })

  it('SYS-26 ignore invalid messages, and close the connection after an invalid close signal', async () => {
    const { client, streams } = await connect('v5.channel.k8s.io')
    streams.stdin!.resume()
    const messages = fc.oneof(fc.uint8Array({ maxLength: 50 }), fc.string({ maxLength: 50 }))
    const samples = fc.sample(messages, { seed: 1, numRuns: 2_000 })
    for (const message of samples) {
      if (typeof message !== 'string' && message[0] === 0xff) continue
      client.send(message)
    }
    client.send(Buffer.from([0xff, 0, 1])) // a close signal with three bytes
    const code = await new Promise((resolve) => client.on('close', resolve))
    expect(code).toBe(1002)
  })
})
