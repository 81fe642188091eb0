// Declares CSIStorageCapacity: the available storage of one class in one topology segment. An unset nodeTopology matches no
// node; an empty one matches every node.
import { nameColumn } from '../../columns.ts'
import { defineKind } from '../../kind.ts'
import { validateLabelSelector } from '../../meta.ts'
import { dns1123SubdomainProblems } from '../../names.ts'
import { quantitySign } from '../../quantity.ts'
import { changedFields } from '../shared/changed-fields.ts'
import { labelSelectorWarnings } from '../shared/deprecated-labels.ts'
import { type CSIStorageCapacity, csiStorageCapacity } from './csi-storage-capacity-schema.ts'

export const csiStorageCapacityKind = defineKind<CSIStorageCapacity>({
  group: 'storage.k8s.io',
  versions: ['v1'],
  kind: 'CSIStorageCapacity',
  plural: 'csistoragecapacities',
  singular: 'csistoragecapacity',
  namespaced: true,
  type: csiStorageCapacity,

  nameErrors: dns1123SubdomainProblems,
  validate({ nodeTopology, storageClassName, capacity }, errors) {
    validateLabelSelector(nodeTopology, 'nodeTopology', errors)
    errors.invalidAll('storageClassName', storageClassName, dns1123SubdomainProblems(storageClassName))
    if (capacity !== undefined && quantitySign(capacity) < 0) {
      errors.invalid('capacity', capacity, 'must be greater than or equal to 0')
    }
  },
  validateUpdate(next, old, errors) {
    const changes = changedFields(csiStorageCapacity, old, next)
    for (const field of ['nodeTopology', 'storageClassName'] as const) {
      const hasChanged = changes.some(({ path }) => path === field || path.startsWith(`${field}.`))
      if (hasChanged) errors.invalid(field, next[field], 'field is immutable')
    }
  },
  warnings: (object) => labelSelectorWarnings(object.nodeTopology, 'nodeTopology'),

  columns: [
    nameColumn,
    {
      name: 'StorageClassName',
      type: 'string',
      doc: 'StorageClass that the capacity is for.',
      cell: (object) => object.storageClassName,
    },
    {
      name: 'Capacity',
      type: 'string',
      doc: 'Available capacity.',
      cell: (object) => object.capacity ?? '<unset>',
    },
  ],
  allowsUnconditionalUpdate: false,
  deleteReturnsObject: false,
})
