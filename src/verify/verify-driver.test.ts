import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import {
  CreateVolumeRequestSchema,
  type ListVolumesRequest,
  VolumeCapability_AccessMode_Mode as Mode,
} from '../csi/gen/csi_pb.js'
import { CsiError } from '../csi/index.ts'
import { type FakeServices, type FakeVerification, verifyFake } from './fake-driver.fixture.ts'
import { CannotVerifyError } from './verify-driver.ts'

/** Replaces every handler of all services. */
function replaceAll(services: FakeServices, wrap: (method: string, original: AnyHandler) => AnyHandler): void {
  for (const handlers of Object.values(services) as Record<string, AnyHandler>[])
    for (const [method, original] of Object.entries(handlers)) handlers[method] = wrap(method, original)
}

type AnyHandler = (request: never, call: never) => Promise<object>

const MOUNT = {
  accessMode: { mode: Mode.SINGLE_NODE_WRITER },
  accessType: { case: 'mount' as const, value: {} },
}

const unavailable = () => Promise.reject(new CsiError('UNAVAILABLE', 'connection refused'))

describe('verifyDriver', () => {
  it('PLUS-7 reports no violation for a healthy driver, and leaves nothing behind', async () => {
    const { report, fake } = await verifyFake()
    const problems = report.checks.filter(({ status }) => !['passed', 'not applicable'].includes(status))
    expect(problems.map(({ id, status, message }) => `${id} ${status}: ${message}`)).toEqual([])
    expect(report.counts).toMatchObject({ violated: 0, 'not applicable': 3 })
    expect(report.leftovers).toEqual([])
    expect(fake.state.volumes).toEqual({})
  })

  it('PLUS-7 skips checks for capabilities that a driver lacks, and gives the reason', async () => {
    const fakeSettings = {
      controller: ['CREATE_DELETE_VOLUME'],
      node: [],
      plugin: ['CONTROLLER_SERVICE'],
      expansion: [],
    } as const satisfies FakeVerification['fakeSettings']
    const { report, fake } = await verifyFake({ fakeSettings })
    expect(report.counts).toMatchObject({ violated: 0, advice: 0, 'not run': 0 })
    expect(report.checks.find(({ id }) => id === 'attach-idempotent')).toMatchObject({
      status: 'not applicable',
      message: 'the controller service does not advertise PUBLISH_UNPUBLISH_VOLUME',
    })
    expect(fake.state.volumes).toEqual({})
  })

  it('PLUS-7 expands the volumes of a driver with offline expansion while they are not in use', async () => {
    const { report } = await verifyFake({
      fakeSettings: { expansion: ['OFFLINE'] },
      only: ['life', 'life-slow', 'expand-*'],
    })
    expect(report.counts).toMatchObject({ violated: 0, advice: 0 })
    expect(report.checks.find(({ id }) => id === 'expand-in-use')?.status).toBe('passed')
  })

  it('PLUS-7 does not report a check as passed if the responses of the driver leave nothing to check', async () => {
    const only = ['capacity-maximum', 'node-expand-idempotent', 'life-expand-and-modify']
    const plant = ({ controller }: FakeServices) =>
      void Object.assign(controller, { getCapacity: async () => ({ availableCapacity: 1024n }) })
    const runWith = async (fakeSettings: FakeVerification['fakeSettings']) => {
      const { report } = await verifyFake({ only, plant, fakeSettings })
      return report.checks.map(({ id, status, message }) => [id, status, message])
    }
    const withoutOnline = 'the driver does not advertise ONLINE expansion'
    expect(await runWith({ expansion: ['OFFLINE'] })).toEqual([
      ['capacity-maximum', 'not applicable', 'GetCapacity returns no maximum_volume_size above 0'],
      ['node-expand-idempotent', 'not applicable', withoutOnline],
      ['life-expand-and-modify', 'not applicable', withoutOnline],
    ])
    expect((await runWith({ expandsOnNode: false }))[1]).toEqual([
      'node-expand-idempotent',
      'not applicable',
      'ControllerExpandVolume requires no expansion on the node',
    ])
  })

  it('PLUS-7 finds the volumes of a driver that returns pages without max_entries', async () => {
    const plant = ({ controller }: FakeServices) => {
      const { createVolume, listVolumes } = controller
      const call = { signal: new AbortController().signal }
      void createVolume(create(CreateVolumeRequestSchema, { name: 'earlier', volumeCapabilities: [MOUNT] }), call)
      Object.assign(controller, {
        listVolumes: (request: ListVolumesRequest) => listVolumes({ ...request, maxEntries: 1 }, call),
      })
    }
    const { report } = await verifyFake({ plant, only: ['create-cancelled', 'delete-removes', 'list-*', 'expand-*'] })
    expect(report.checks.filter(({ status }) => status === 'violated')).toEqual([])
    expect(report.counts.passed).toBeGreaterThan(8)
  })

  it('PLUS-7 accepts a driver whose CreateVolume returns no size', async () => {
    const plant = ({ controller }: FakeServices) => {
      const { createVolume } = controller
      Object.assign(controller, {
        async createVolume(...args: Parameters<typeof createVolume>) {
          const { volume } = await createVolume(...args)
          return { volume: { ...volume, capacityBytes: 0n } }
        },
      })
    }
    const { report } = await verifyFake({ plant, only: ['create-*', 'list-*', 'get-*', 'expand-*'] })
    expect(report.checks.filter(({ status }) => status === 'violated')).toEqual([])
  })

  it('PLUS-7 sends the same calls for the same seed', async () => {
    const runWith = async (seed: number) => {
      const { fake } = await verifyFake({ only: ['life', 'create-volume'], settings: { seed } })
      return fake.record.calls.filter(({ volume }) => volume).map(({ method, volume }) => `${method} ${volume}`)
    }
    const calls = await runWith(11)
    expect(calls.length).toBeGreaterThan(10)
    expect(await runWith(11)).toEqual(calls)
    expect(await runWith(12)).not.toEqual(calls)
  })

  it('PLUS-7 cannot verify a driver that lacks the Identity service', async () => {
    const plant = (services: FakeServices) => {
      services.identity = {} as FakeServices['identity']
    }
    await expect(verifyFake({ plant })).rejects.toThrow(
      'The driver does not serve the Identity service (GetPluginInfo is not implemented).',
    )
  })

  it('PLUS-7 cannot verify a driver that never responds', async () => {
    const plant = (services: FakeServices) => replaceAll(services, () => () => new Promise(() => {}))
    const settings = { callTimeoutMs: 20 }
    await expect(verifyFake({ plant, settings })).rejects.toThrow(CannotVerifyError)
  })

  it('PLUS-7 ends if the driver crashes, and reports the leftovers', async () => {
    let isCrashed = false
    const plant = (services: FakeServices) =>
      replaceAll(services, (method, original) => (request, call) => {
        if (method === 'deleteVolume') isCrashed = true
        return isCrashed ? unavailable() : original(request, call)
      })
    const { report } = await verifyFake({ plant, only: ['identity-name', 'delete-idempotent', 'life'] })
    expect(report.stopped).toBe('the driver no longer responds: connection refused')
    expect(report.checks.map(({ status }) => status)).toEqual(['passed', 'violated', 'not run'])
    expect(report.leftovers).toEqual([
      expect.stringMatching(/^volume vol-.* stays: UNAVAILABLE \(connection refused\)$/),
    ])
  })

  it('PLUS-7 ends a check that takes too long', async () => {
    const plant = (services: FakeServices) =>
      replaceAll(services, (method, original) =>
        method === 'nodeStageVolume' ? () => new Promise(() => {}) : original,
      )
    const settings = { callTimeoutMs: 10, checkTimeoutMs: 100 }
    const { report } = await verifyFake({ plant, only: ['life', 'identity-name'], settings })
    expect(report.checks.map(({ id, status }) => `${id} ${status}`)).toEqual(['identity-name passed', 'life violated'])
    expect(report.checks[1]?.message).toMatch(/did not end within 0\.1 s|not reached within/)
  })

  it('PLUS-7 stops and removes its volumes when it is interrupted', async () => {
    const interrupt = new AbortController()
    const plant = ({ controller }: FakeServices) => {
      const { controllerPublishVolume } = controller
      Object.assign(controller, {
        controllerPublishVolume: (...args: Parameters<typeof controllerPublishVolume>) => {
          interrupt.abort()
          return controllerPublishVolume(...args)
        },
      })
    }
    const { report, fake } = await verifyFake({ plant, only: ['attach-*', 'life'], signal: interrupt.signal })
    expect(report.stopped).toBe('interrupted')
    expect(report.counts).toMatchObject({ passed: 0, violated: 0 })
    expect(report.leftovers).toEqual([])
    expect(fake.state.volumes).toEqual({})
  })

  it('PLUS-7 shows no secret in the calls of a violation', async () => {
    const secrets = { CreateVolumeSecret: { password: 'hunter2-hunter2' } }
    const plant = ({ controller }: FakeServices) =>
      void Object.assign(controller, {
        createVolume: async (request: { secrets: Record<string, string> }) => {
          throw new CsiError('INTERNAL', `login failed with ${request.secrets.password}`)
        },
      })
    const { report } = await verifyFake({ plant, only: ['create-*', 'secrets-*', 'life'], settings: { secrets } })
    expect(report.counts.violated).toBeGreaterThan(5)
    expect(JSON.stringify(report)).not.toContain('hunter2')
  })
})
