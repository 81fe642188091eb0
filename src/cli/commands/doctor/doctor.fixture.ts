// Test fixture: the context of a check, with the objects of a cluster by the plural of their kind.
import type { KubeObject, Stored } from '../../../api/kind.ts'
import { ApiError } from '../../../api/status-error.ts'
import { manualClock } from '../../../base/manual-clock.ts'
import type { DriverFacts } from '../../../csi/index.ts'
import type { DoctorContext } from './check.ts'

/** The objects of each kind, or the error of a request for them. */
type Objects = Readonly<Record<string, readonly object[] | ApiError>>

export interface ContextOptions extends Partial<Omit<DoctorContext, 'cluster' | 'client'>> {
  readonly objects?: Objects
  /** Plurals of kinds that the server does not serve. */
  readonly unservedPlurals?: readonly string[]
  readonly client?: Partial<DoctorContext['client']>
}

export function aContext({
  objects = {},
  unservedPlurals = [],
  client = {},
  ...overrides
}: ContextOptions = {}): DoctorContext {
  const clock = overrides.clock ?? manualClock()
  const nowMs = clock.nowMs()
  return {
    clock,
    /** Without TLS, so that the check of certificates does not connect to it. */
    connection: { server: 'http://cluster.example', credentials: async () => ({}) },
    server: { version: 'v1.36.0', dateMs: nowMs, sentMs: nowMs, receivedMs: nowMs },
    dataDir: '/nonexistent-stowage',
    client: {
      create: () => Promise.reject(new ApiError(500, 'InternalError', 'the test expects no review')),
      commitsAtomically: async () => false,
      ...client,
    },
    cluster: {
      async list({ plural }) {
        const list = objects[plural] ?? []
        if (list instanceof ApiError) throw list
        return list.map((object) => ({ metadata: {}, ...object })) as unknown as Readonly<Stored<KubeObject>>[] as never
      },
      serves: async ({ plural }) => !unservedPlurals.includes(plural),
    },
    ...overrides,
  }
}

/** The error that an API server returns to a user without permission. */
export const createForbiddenError = (plural: string): ApiError =>
  new ApiError(403, 'Forbidden', `${plural} is forbidden: User "viewer" cannot list resource "${plural}"`)

export const createDriverFacts = (overrides: Partial<DriverFacts> = {}): DriverFacts => ({
  name: 'disks.example.com',
  version: '1.2',
  plugin: new Set(['CONTROLLER_SERVICE', 'VOLUME_ACCESSIBILITY_CONSTRAINTS']),
  expansion: new Set(['ONLINE']),
  controller: new Set([
    'CREATE_DELETE_VOLUME',
    'PUBLISH_UNPUBLISH_VOLUME',
    'EXPAND_VOLUME',
    'MODIFY_VOLUME',
    'GET_CAPACITY',
  ]),
  node: new Set(),
  ...overrides,
})

/** A CSINode on which one driver is registered. */
export const aCsiNode = (node: string, driver: string, topologyKeys: readonly string[] = []) => ({
  metadata: { name: node },
  spec: { drivers: [{ name: driver, nodeID: node, topologyKeys }] },
})
