// Validates the volume mounts and volume devices of a container, which must have unique paths and refer to volumes of the
// pod.
import type { FieldErrors } from '../../field-errors.ts'
import type { Infer } from '../../schema.ts'
import { hasBacksteps, validateDescendingPath } from '../shared/path-rules.ts'
import type { Container, volumeDevice, volumeMount } from './container-schema.ts'
import type { Volume } from './pod-volumes-schema.ts'

export interface MountsInput {
  readonly container: Container
  /** Path of the container. */
  readonly field: string
  readonly volumes: ReadonlyMap<string, Volume>
  readonly errors: FieldErrors
}

type Mount = Infer<typeof volumeMount>
type Device = Infer<typeof volumeDevice>

export function validateMounts({ container, field, volumes, errors }: MountsInput): void {
  const paths = new Set<string>()
  const deviceNames = new Set(container.volumeDevices?.map(({ name }) => name))
  const devicePaths = new Set(container.volumeDevices?.map(({ devicePath }) => devicePath))
  for (const [index, mount] of (container.volumeMounts ?? []).entries()) {
    const mountField = `${field}.volumeMounts[${index}]`
    if (mount.name === '') errors.required(`${mountField}.name`)
    if (!volumes.has(mount.name)) errors.notFound(`${mountField}.name`, mount.name)
    if (mount.mountPath === '') errors.required(`${mountField}.mountPath`)
    if (paths.has(mount.mountPath)) errors.invalid(`${mountField}.mountPath`, mount.mountPath, 'must be unique')
    paths.add(mount.mountPath)
    if (deviceNames.has(mount.name)) {
      errors.invalid(`${mountField}.name`, mount.name, 'must not already exist in volumeDevices')
    }
    if (devicePaths.has(mount.mountPath)) {
      errors.invalid(`${mountField}.mountPath`, mount.mountPath, 'must not already exist as a path in volumeDevices')
    }
    validateMountOptions(mount, { container, mountField, field: `${field}.volumeMounts`, errors })
  }
}

const PROPAGATION_MODES = ['Bidirectional', 'HostToContainer', 'None']
const RECURSIVE_READ_ONLY_MODES = ['Disabled', 'Enabled', 'IfPossible']

interface MountOptionsInput {
  container: Container
  /** Path of the mount. */
  mountField: string
  /** Path of the list, which some errors have as their field, as in Kubernetes. */
  field: string
  errors: FieldErrors
}

function validateMountOptions(mount: Mount, { container, mountField, field, errors }: MountOptionsInput): void {
  const { subPath, subPathExpr, mountPropagation, recursiveReadOnly } = mount
  if (subPath) validateDescendingPath(subPath, `${field}.subPath`, errors)
  if (subPathExpr) {
    if (subPath)
      errors.invalid(`${mountField}.subPathExpr`, subPathExpr, 'subPathExpr and subPath are mutually exclusive')
    validateDescendingPath(subPathExpr, `${field}.subPathExpr`, errors)
  }
  if (mountPropagation !== undefined) {
    if (!PROPAGATION_MODES.includes(mountPropagation)) {
      errors.notSupported(`${field}.mountPropagation`, mountPropagation, PROPAGATION_MODES)
    }
    if (mountPropagation === 'Bidirectional' && container.securityContext?.privileged !== true) {
      errors.forbidden(
        `${field}.mountPropagation`,
        'Bidirectional mount propagation is available only to privileged containers',
      )
    }
  }
  if (recursiveReadOnly === undefined || recursiveReadOnly === 'Disabled') return
  if (!RECURSIVE_READ_ONLY_MODES.includes(recursiveReadOnly)) {
    errors.notSupported(`${field}.recursiveReadOnly`, recursiveReadOnly, RECURSIVE_READ_ONLY_MODES)
    return
  }
  if (!mount.readOnly) errors.forbidden(`${field}.recursiveReadOnly`, 'may only be specified when readOnly is true')
  if (mountPropagation !== undefined && mountPropagation !== 'None') {
    errors.forbidden(
      `${field}.recursiveReadOnly`,
      'may only be specified when mountPropagation is None or not specified',
    )
  }
}

export function validateDevices({ container, field, volumes, errors }: MountsInput): void {
  const names = new Set<string>()
  const paths = new Set<string>()
  const mountNames = new Set(container.volumeMounts?.map(({ name }) => name))
  const mountPaths = new Set(container.volumeMounts?.map(({ mountPath }) => mountPath))
  for (const [index, device] of (container.volumeDevices ?? []).entries()) {
    const deviceField = `${field}.volumeDevices[${index}]`
    validateDeviceVolume(device, volumes.get(device.name), deviceField, errors)
    if (device.name !== '' && names.has(device.name))
      errors.invalid(`${deviceField}.name`, device.name, 'must be unique')
    names.add(device.name)
    if (device.devicePath === '') errors.required(`${deviceField}.devicePath`)
    if (paths.has(device.devicePath)) errors.invalid(`${deviceField}.devicePath`, device.devicePath, 'must be unique')
    if (hasBacksteps(device.devicePath)) {
      errors.invalid(`${deviceField}.devicePath`, device.devicePath, "can not contain backsteps ('..')")
    }
    paths.add(device.devicePath)
    if (mountNames.has(device.name)) {
      errors.invalid(`${deviceField}.name`, device.name, 'must not already exist in volumeMounts')
    }
    if (mountPaths.has(device.devicePath)) {
      errors.invalid(`${deviceField}.devicePath`, device.devicePath, 'must not already exist as a path in volumeMounts')
    }
  }
}

function validateDeviceVolume(device: Device, volume: Volume | undefined, field: string, errors: FieldErrors): void {
  if (device.name === '') errors.required(`${field}.name`)
  if (!volume) errors.notFound(`${field}.name`, device.name)
  else if (!volume.persistentVolumeClaim && !volume.ephemeral) {
    errors.invalid(
      `${field}.name`,
      device.name,
      'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode',
    )
  }
}
