// Test fixture: verifies a fake driver in this process. Tests can replace its handlers with faulty ones.
import { mkdirSync, rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create, type Message } from '@bufbuild/protobuf'
import { systemClock } from '../base/clock.ts'
import { createFakeDriver, type FakeDriver, type FakeSettings, fakeSettings } from '../csi/fake/index.ts'
import type { Controller, Identity, Node } from '../csi/gen/csi_pb.js'
import { CsiError, createServiceClients, type ServiceHandlers, withoutMessage } from '../csi/index.ts'
import { createMounts } from '../host/mounts.ts'
import { createRun } from '../host/run.ts'
import { createHostDisk } from '../nodeagent/disk/host-disk.ts'
import type { OpenDriver } from './calls/driver-link.ts'
import { selectChecks } from './catalogue.ts'
import type { VerifyReport } from './report.ts'
import { DEFAULT_SETTINGS, type VerifySettings } from './settings.ts'
import { verifyDriver } from './verify-driver.ts'

export interface FakeServices {
  identity: ServiceHandlers<typeof Identity>
  controller: ServiceHandlers<typeof Controller>
  node: ServiceHandlers<typeof Node>
}

export interface FakeVerification {
  readonly settings?: Partial<VerifySettings>
  readonly fakeSettings?: Partial<FakeSettings>
  /** Ids of the checks, or patterns such as `create-*`. Default: all. */
  readonly only?: readonly string[]
  /** Replaces handlers of the driver. */
  readonly plant?: (services: FakeServices, fake: FakeDriver) => void
  readonly signal?: AbortSignal
}

const OTHER_NODE = 'node-2'
const ZONE = { 'fake.stowage.example/zone': 'a' }

/** A fake driver with every capability, accessibility constraints and two nodes. */
const verifiableSettings = (changes: Partial<FakeSettings> = {}): FakeSettings =>
  fakeSettings({
    pools: [{ name: 'pool', capacityBytes: 100 * 1024 ** 3, segments: ZONE }],
    nodes: [
      { id: 'node-1', segments: ZONE, maxVolumes: 100 },
      { id: OTHER_NODE, segments: ZONE },
    ],
    ...changes,
  })

export interface FakeResult {
  readonly report: VerifyReport
  readonly fake: FakeDriver
}

export async function verifyFake(verification: FakeVerification = {}): Promise<FakeResult> {
  const clock = systemClock()
  const directory = await mkdtemp(join(tmpdir(), 'stowage-verify-'))
  const fake = createFakeDriver({
    clock,
    settings: verifiableSettings(verification.fakeSettings),
    targets: {
      make: (path) => void mkdirSync(path, { recursive: true }),
      remove: (path) => rmSync(path, { recursive: true, force: true }),
    },
  })
  const services: FakeServices = {
    identity: { ...fake.identity },
    controller: { ...fake.controller },
    node: { ...fake.node('node-1') },
  }
  verification.plant?.(services, fake)
  const run = createRun({ clock })
  try {
    const report = await verifyDriver({
      csiAddress: 'fake',
      open: openServices(services),
      checks: selectChecks(verification.only ?? []),
      settings: {
        ...DEFAULT_SETTINGS,
        attributes: { iops: '500' },
        otherNodeId: OTHER_NODE,
        seed: 7,
        ...verification.settings,
      },
      directory,
      disk: createHostDisk({ mounts: createMounts({ run }), run }),
      clock,
      signal: verification.signal ?? new AbortController().signal,
    })
    return { report, fake }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

type AnyHandler = (request: Message, call: { readonly signal: AbortSignal }) => Promise<object>

/** Connects to handlers in this process. Calls end at the caller's deadline or when its signal is aborted. */
const openServices =
  (services: FakeServices): OpenDriver =>
  () => ({
    ...createServiceClients(async (method, request, { timeoutMs = 10_000, signal }) => {
      const service = { Identity: services.identity, Controller: services.controller, Node: services.node }[
        method.parent.name
      ] as unknown as Record<string, AnyHandler>
      const cancel = new AbortController()
      const handler = service[method.localName]
      if (!handler) throw new CsiError('UNIMPLEMENTED', `${method.name} is not implemented`)
      const end = new Promise<never>((_resolve, reject) => {
        const timer = setTimeout(() => reject(new CsiError('DEADLINE_EXCEEDED', 'no response')), timeoutMs)
        cancel.signal.addEventListener('abort', () => clearTimeout(timer))
        signal?.addEventListener('abort', () => reject(new CsiError('CANCELLED', 'cancelled')), { once: true })
      })
      end.catch(() => {}) // a handler may fail before the race
      try {
        // A request over a socket arrives in a later turn of the event loop.
        await new Promise((resolve) => setImmediate(resolve))
        const response = await Promise.race([handler(request, { signal: cancel.signal }), end])
        return create(method.output, response as never)
      } catch (error) {
        // Matches the behavior of a connection over a socket.
        if (error instanceof CsiError && error.message === '')
          throw new CsiError(error.codeName, withoutMessage(method.name))
        throw error
      } finally {
        cancel.abort()
      }
    }),
    close() {},
  })
