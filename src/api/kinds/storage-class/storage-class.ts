// Declares StorageClass: a class of storage that claims can request, and its provisioner.
import { ageColumn, nameColumn } from '../../columns.ts'
import { defineKind, type KubeObject } from '../../kind.ts'
import { dns1123SubdomainProblems } from '../../names.ts'
import { validateImmutableField } from '../shared/changed-fields.ts'
import { validateParameters, validateProvisionerName } from '../shared/class-parameters.ts'
import { deprecatedLabelWarning } from '../shared/deprecated-labels.ts'
import { findDefaultClass } from './default-class.ts'
import { type StorageClass, storageClass } from './storage-class-schema.ts'
import { validateTopologyTerms } from './topology-terms.ts'

export const storageClassKind = defineKind<StorageClass>({
  group: 'storage.k8s.io',
  versions: ['v1', 'v1beta1'],
  kind: 'StorageClass',
  plural: 'storageclasses',
  singular: 'storageclass',
  shortNames: ['sc'],
  namespaced: false,
  type: storageClass,

  nameErrors: dns1123SubdomainProblems,
  validate(object, errors) {
    validateProvisionerName(object.provisioner, 'provisioner', errors)
    validateParameters(object.parameters, { isRequired: false }, errors)
    if (object.reclaimPolicy && !RECLAIM_POLICIES.includes(object.reclaimPolicy)) {
      errors.notSupported('reclaimPolicy', object.reclaimPolicy, RECLAIM_POLICIES)
    }
    if (object.volumeBindingMode === undefined) errors.required('volumeBindingMode')
    else if (!BINDING_MODES.includes(object.volumeBindingMode)) {
      errors.notSupported('volumeBindingMode', object.volumeBindingMode, BINDING_MODES)
    }
    validateTopologyTerms(object.allowedTopologies, errors)
  },
  validateUpdate(next, old, errors) {
    for (const field of IMMUTABLE_FIELDS) {
      const { type } = storageClass.fields[field]
      validateImmutableField({ field, type, oldValue: old[field], newValue: next[field] }, errors)
    }
  },
  warnings: (object) =>
    (object.allowedTopologies ?? []).flatMap((term, i) =>
      (term.matchLabelExpressions ?? []).flatMap(({ key }, j) => {
        const warning = deprecatedLabelWarning(key)
        return warning ? [`allowedTopologies[${i}].matchLabelExpressions[${j}].key: ${warning}`] : []
      }),
    ),

  columns: [
    {
      ...nameColumn,
      cell(object, { siblings }) {
        const name = object.metadata.name ?? ''
        return siblings && defaultClassName(siblings) === name ? `${name} (default)` : name
      },
    },
    {
      name: 'Provisioner',
      type: 'string',
      doc: 'Provisioner of the volumes.',
      cell: (object) => object.provisioner,
    },
    {
      name: 'ReclaimPolicy',
      type: 'string',
      doc: 'Reclaim policy of provisioned volumes.',
      cell: (object) => object.reclaimPolicy ?? 'Delete',
    },
    {
      name: 'VolumeBindingMode',
      type: 'string',
      doc: 'When volumes are bound and provisioned.',
      cell: (object) => object.volumeBindingMode ?? 'Immediate',
    },
    {
      name: 'AllowVolumeExpansion',
      type: 'boolean',
      doc: 'Whether claims of this class can be expanded.',
      cell: (object) => object.allowVolumeExpansion ?? false,
    },
    ageColumn,
  ],
  deleteReturnsObject: true,
})

const RECLAIM_POLICIES: readonly string[] = ['Delete', 'Retain']
const BINDING_MODES: readonly string[] = ['Immediate', 'WaitForFirstConsumer']
const IMMUTABLE_FIELDS = ['parameters', 'provisioner', 'reclaimPolicy', 'volumeBindingMode'] as const

/** The name of the default class by list response, so that the list is searched only once. */
const defaultClassNames = new WeakMap<readonly KubeObject[], string>()

function defaultClassName(siblings: readonly KubeObject[]): string {
  let name = defaultClassNames.get(siblings)
  if (name === undefined) {
    name = findDefaultClass(siblings as readonly StorageClass[])?.metadata.name ?? ''
    defaultClassNames.set(siblings, name)
  }
  return name
}
