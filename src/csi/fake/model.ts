// The model that the handlers of the fake driver operate on, and the checks that they share. A handler is synchronous: it
// changes the state and returns a response, or throws.
import { type DescMethod, type Message, ScalarType } from '@bufbuild/protobuf'
import type { Clock } from '../../base/clock.ts'
import type { ServiceHandlers } from '../driver.ts'
import { CsiError, type CsiFailureCode } from '../errors.ts'
import type { ControllerCapability, NodeCapability } from '../facts.ts'
import { VolumeCapability_AccessMode_Mode as Mode, type VolumeCapability } from '../gen/csi_pb.js'
import type { FakeSettings } from './settings.ts'
import type { FakeState, FakeVolume } from './state.ts'

export interface Model {
  readonly settings: FakeSettings
  readonly state: FakeState
  readonly clock: Pick<Clock, 'nowMs'>
  readonly targets?: FakeTargets
}

/** Creates and removes target paths, which the fake driver otherwise only records. */
export interface FakeTargets {
  make(path: string): void
  remove(path: string): void
}

/** Changes that a fault rule makes to a successful call. */
export interface Overrides {
  /** The size that the volume gets, regardless of the request. */
  readonly sizeBytes?: number
}

/** The handlers of a service. */
export type Handlers<S extends { readonly method: Record<string, DescMethod> }> = {
  readonly [M in keyof ServiceHandlers<S>]: (
    model: Model,
    request: Parameters<ServiceHandlers<S>[M]>[0],
    overrides: Overrides,
  ) => Awaited<ReturnType<ServiceHandlers<S>[M]>>
}

export function fail(code: CsiFailureCode, message: string): never {
  throw new CsiError(code, message)
}

export function requireControllerCapability({ settings }: Model, capability: ControllerCapability): void {
  if (!settings.controller.includes(capability)) fail('UNIMPLEMENTED', `${settings.name} does not have ${capability}`)
}

export function requireNodeCapability({ settings }: Model, capability: NodeCapability): void {
  if (!settings.node.includes(capability)) fail('UNIMPLEMENTED', `${settings.name} does not have node ${capability}`)
}

export function requireField(value: unknown, field: string): void {
  const isMissing = !value || (Array.isArray(value) && value.length === 0)
  if (isMissing) fail('INVALID_ARGUMENT', `${field} is required`)
}

export function getVolume({ state }: Model, volumeId: string): FakeVolume {
  return state.volumes[volumeId] ?? fail('NOT_FOUND', `volume "${volumeId}" does not exist`)
}

/** Formats a capability for comparison. Mount flags are omitted, because they may be secret. */
export function formatCapability(capability: VolumeCapability | undefined): string {
  requireField(capability?.accessType.case, 'access_type')
  requireField(capability?.accessMode?.mode, 'access_mode')
  const { accessType, accessMode } = capability!
  const kind = accessType.case === 'mount' ? `mount ${accessType.value.fsType}`.trim() : 'block'
  return `${kind} ${Mode[accessMode!.mode] ?? fail('INVALID_ARGUMENT', 'access_mode is unknown')}`
}

export const isMultiNode = (capability: string) => capability.includes('MULTI_NODE')
export const isMountCapability = (capability: string) => capability.startsWith('mount')

export const areMapsEqual = (a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>) =>
  Object.keys(a).length === Object.keys(b).length && Object.entries(a).every(([key, value]) => b[key] === value)

const TEXT_BYTES_MAX = 128
const NODE_ID_BYTES_MAX = 256
const MAP_BYTES_MAX = 4_096

/** Checks the size limits of the CSI specification and the secrets that the settings require. */
export function checkRequest(model: Model, method: DescMethod, request: Message): void {
  const values = request as unknown as Record<string, unknown>
  for (const field of method.input.fields) {
    const value = values[field.localName]
    if (field.fieldKind === 'scalar' && field.scalar === ScalarType.STRING && !field.name.endsWith('_path')) {
      const maxBytes = field.name === 'node_id' ? NODE_ID_BYTES_MAX : TEXT_BYTES_MAX
      if (Buffer.byteLength(value as string) > maxBytes) fail('INVALID_ARGUMENT', `${field.name} is too long`)
    }
    if (field.fieldKind === 'map') {
      const entries = Object.entries(value as Record<string, string>)
      const bytes = entries.reduce((sum, [key, text]) => sum + Buffer.byteLength(key) + Buffer.byteLength(text), 0)
      if (bytes > MAP_BYTES_MAX) fail('INVALID_ARGUMENT', `${field.name} is too large`)
    }
    if (field.name === 'secrets') {
      const missingKeys = model.settings.secretKeys.filter((key) => !(value as Record<string, string>)[key])
      if (missingKeys.length > 0) fail('UNAUTHENTICATED', `missing secrets: ${missingKeys.join(', ')}`)
    }
  }
}
