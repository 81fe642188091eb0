// Declares VolumeAttributesClass: driver-specific attributes of volumes that can be changed while a volume is in use.
import { ageColumn, nameColumn } from '../../columns.ts'
import { defineKind } from '../../kind.ts'
import { dns1123SubdomainProblems } from '../../names.ts'
import { isSameValue } from '../shared/changed-fields.ts'
import { validateParameters, validateProvisionerName } from '../shared/class-parameters.ts'
import { type VolumeAttributesClass, volumeAttributesClass } from './attributes-class-schema.ts'

export const volumeAttributesClassKind = defineKind<VolumeAttributesClass>({
  group: 'storage.k8s.io',
  versions: ['v1', 'v1beta1', 'v1alpha1'],
  kind: 'VolumeAttributesClass',
  plural: 'volumeattributesclasses',
  singular: 'volumeattributesclass',
  shortNames: ['vac'],
  namespaced: false,
  type: volumeAttributesClass,

  nameErrors: dns1123SubdomainProblems,
  validate(object, errors) {
    validateProvisionerName(object.driverName, 'driverName', errors)
    validateParameters(object.parameters, { isRequired: true }, errors)
  },
  validateUpdate(next, old, errors) {
    for (const field of ['driverName', 'parameters'] as const) {
      const { type } = volumeAttributesClass.fields[field]
      if (!isSameValue(type, old[field], next[field])) errors.forbidden(field, `updates to ${field} are forbidden.`)
    }
  },

  columns: [
    nameColumn,
    {
      name: 'DriverName',
      type: 'string',
      doc: 'CSI driver that the parameters are for.',
      cell: (object) => object.driverName,
    },
    ageColumn,
  ],
  deleteReturnsObject: true,
})
