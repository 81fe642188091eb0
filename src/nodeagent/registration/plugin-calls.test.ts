import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { Server, ServerCredentials } from '@grpc/grpc-js'
import { describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import { Registration } from '../../csi/gen/registration_pb.js'
import { createPluginCalls } from './plugin-calls.ts'
import { createPluginDirectory } from './plugin-directory.ts'

describe('the plugin calls', () => {
  it("get a plugin's info and notify it over a socket in the registration directory", async () => {
    const dir = await mkdtemp(join(tmpdir(), 'stowage-registry-'))
    const path = join(dir, 'deep', 'driver-reg.sock')
    const directory = createPluginDirectory({ path: dir, log: silentLog })
    expect(await directory.list()).toEqual([])
    const notifications: object[] = []
    const stop = await serveRegistrar(path, notifications)
    onTestFinished(async () => {
      stop()
      await rm(dir, { recursive: true, force: true })
    })
    const [socket] = await directory.list()
    expect(socket?.path).toBe(path)
    const calls = createPluginCalls({ clock: systemClock() })
    expect(await calls.getInfo(path)).toMatchObject({ type: 'CSIPlugin', name: 'x.example.com', endpoint: '/csi.sock' })
    await calls.notify(path)
    await calls.notify(path, 'no')
    expect(notifications).toMatchObject([
      { pluginRegistered: true, error: '' },
      { pluginRegistered: false, error: 'no' },
    ])
    await expect(calls.getInfo(join(dir, 'missing.sock'))).rejects.toThrow(/GetInfo at .*missing.sock/)
  })
})

async function serveRegistrar(path: string, notifications: object[]): Promise<() => void> {
  await mkdir(join(path, '..'), { recursive: true })
  const server = new Server()
  const { getInfo, notifyRegistrationStatus } = Registration.method
  const definition = (method: typeof getInfo | typeof notifyRegistrationStatus) => ({
    path: `/pluginregistration.Registration/${method.name}`,
    requestStream: false as const,
    responseStream: false as const,
    requestSerialize: (message: any) => Buffer.from(toBinary(method.input as any, message)),
    requestDeserialize: (bytes: Buffer) => fromBinary(method.input as any, bytes),
    responseSerialize: (message: any) => Buffer.from(toBinary(method.output as any, message)),
    responseDeserialize: (bytes: Buffer) => fromBinary(method.output as any, bytes),
  })
  server.addService(
    { getInfo: definition(getInfo), notify: definition(notifyRegistrationStatus) },
    {
      getInfo: (_call: unknown, respond: any) =>
        respond(
          null,
          create(getInfo.output, {
            type: 'CSIPlugin',
            name: 'x.example.com',
            endpoint: '/csi.sock',
            supportedVersions: ['1.0.0'],
          }),
        ),
      notify: (call: any, respond: any) => {
        notifications.push(call.request)
        respond(null, create(notifyRegistrationStatus.output))
      },
    },
  )
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) =>
      error ? reject(error) : resolve(),
    ),
  )
  return () => server.forceShutdown()
}
