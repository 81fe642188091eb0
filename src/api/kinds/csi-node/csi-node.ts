// Declares CSINode: the drivers registered on a node, with their node IDs, topology keys, volume limits and storage health.
import { ageColumn, nameColumn } from '../../columns.ts'
import type { FieldErrors } from '../../field-errors.ts'
import { defineKind } from '../../kind.ts'
import { dns1123SubdomainProblems, qualifiedNameProblems } from '../../names.ts'
import { validateCsiDriverName } from '../csi-driver/csi-driver-name.ts'
import { isSameValue } from '../shared/changed-fields.ts'
import { type CSINode, type CSINodeDriver, csiNode, csiNodeDriver } from './csi-node-schema.ts'
import { validateStorageHealth } from './storage-health-rules.ts'

export const csiNodeKind = defineKind<CSINode>({
  group: 'storage.k8s.io',
  versions: ['v1'],
  kind: 'CSINode',
  plural: 'csinodes',
  singular: 'csinode',
  namespaced: false,
  type: csiNode,

  nameErrors: dns1123SubdomainProblems,
  prepareForCreate(node) {
    delete node.status
  },
  validate(node, errors) {
    const names = new Set<string>()
    node.spec.drivers.forEach((driver, index) => {
      const field = `spec.drivers[${index}]`
      validateDriver(driver, field, errors)
      if (names.has(driver.name)) errors.duplicate(`${field}.name`, driver.name)
      names.add(driver.name)
      validateTopologyKeys(driver.topologyKeys, field, errors)
    })
  },
  validateUpdate(next, old, errors) {
    const oldDrivers = new Map(old.spec.drivers.map((driver) => [driver.name, driver]))
    for (const driver of next.spec.drivers) {
      const oldDriver = oldDrivers.get(driver.name)
      if (!oldDriver) continue
      const { allocatable: _allocatable, ...immutableFields } = driver
      if (!isSameValue(csiNodeDriver, { ...oldDriver, allocatable: undefined }, immutableFields)) {
        errors.invalid('spec.drivers', immutableFields, 'field is immutable')
      }
    }
  },
  status: {
    acceptsMetadata: false,
    validate: (node, _old, errors) => validateStorageHealth(node.status?.storageHealth, errors),
  },

  columns: [
    nameColumn,
    {
      name: 'Drivers',
      type: 'integer',
      doc: 'Number of drivers registered on the node.',
      cell: ({ spec }) => spec.drivers.length,
    },
    ageColumn,
  ],
  allowsUnconditionalUpdate: false,
  deleteReturnsObject: true,
})

const NODE_ID_BYTES_MAX = 256

function validateDriver({ name, nodeID, allocatable }: CSINodeDriver, field: string, errors: FieldErrors): void {
  validateCsiDriverName(name, `${field}.name`, errors)
  if (nodeID === '') errors.required(`${field}.nodeID`)
  if (Buffer.byteLength(nodeID) > NODE_ID_BYTES_MAX) {
    errors.invalid(`${field}.nodeID`, nodeID, `must be ${NODE_ID_BYTES_MAX} characters or less`)
  }
  if (allocatable?.count !== undefined && allocatable.count < 0) {
    errors.invalid(`${field}.allocatable.count`, allocatable.count, 'must be greater than or equal to 0')
  }
}

/** Validates topology keys. As in Kubernetes, errors have the field of the driver instead of the key. */
function validateTopologyKeys(keys: readonly string[], field: string, errors: FieldErrors): void {
  const seenKeys = new Set<string>()
  for (const key of keys) {
    if (key === '') errors.required(field)
    if (seenKeys.has(key)) errors.duplicate(field, key)
    seenKeys.add(key)
    errors.invalidAll(field, key, qualifiedNameProblems(key))
  }
}
