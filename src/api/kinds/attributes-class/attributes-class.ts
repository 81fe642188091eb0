// VolumeAttributesClass: attributes of a volume that can change while it is in use, as a driver understands them.
import { ageColumn, nameColumn } from '../../columns.ts'
import { defineKind } from '../../kind.ts'
import { dns1123SubdomainProblems } from '../../names.ts'
import { sameValue } from '../shared/changed-fields.ts'
import { validateActorName, validateParameters } from '../shared/class-parameters.ts'
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
    validateActorName(object.driverName, 'driverName', errors)
    validateParameters(object.parameters, { atLeastOne: true }, errors)
  },
  validateUpdate(next, old, errors) {
    for (const field of ['driverName', 'parameters'] as const) {
      const { type } = volumeAttributesClass.fields[field]
      if (!sameValue(type, old[field], next[field])) errors.forbidden(field, `updates to ${field} are forbidden.`)
    }
  },

  columns: [
    nameColumn,
    {
      name: 'DriverName',
      type: 'string',
      doc: 'The CSI driver that understands the parameters.',
      cell: (object) => object.driverName,
    },
    ageColumn,
  ],
  deleteReturnsObject: true,
})
