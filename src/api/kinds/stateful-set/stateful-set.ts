// Declares StatefulSet: pods with stable names and claims. ../../../controllers/stateful-sets creates them.
import { ageColumn, nameColumn } from '../../columns.ts'
import { defineKind } from '../../kind.ts'
import { dns1123LabelProblems } from '../../names.ts'
import { setStatefulSetDefaults } from './stateful-set-defaults.ts'
import { validateStatefulSet, validateStatefulSetStatus, validateStatefulSetUpdate } from './stateful-set-rules.ts'
import { type StatefulSet, statefulSet } from './stateful-set-schema.ts'

export const statefulSetKind = defineKind<StatefulSet>({
  group: 'apps',
  versions: ['v1'],
  kind: 'StatefulSet',
  plural: 'statefulsets',
  singular: 'statefulset',
  shortNames: ['sts'],
  categories: ['all'],
  namespaced: true,
  type: statefulSet,

  nameErrors: dns1123LabelProblems,
  defaults: setStatefulSetDefaults,
  prepareForCreate(set) {
    set.status = { replicas: 0, availableReplicas: 0 }
  },
  validate: validateStatefulSet,
  validateUpdate: validateStatefulSetUpdate,
  warnings: ({ spec }) =>
    (spec?.revisionHistoryLimit ?? 0) < 0
      ? ['spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended']
      : [],
  status: { acceptsMetadata: true, validate: validateStatefulSetStatus },

  columns: [
    nameColumn,
    {
      name: 'Ready',
      type: 'string',
      doc: 'Number of ready pods and of desired pods.',
      cell: ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`,
    },
    ageColumn,
    {
      name: 'Containers',
      type: 'string',
      wide: true,
      doc: 'Names of the containers of the template.',
      cell: ({ spec }) => spec?.template.spec.containers.map(({ name }) => name).join(','),
    },
    {
      name: 'Images',
      type: 'string',
      wide: true,
      doc: 'Images of the containers of the template.',
      cell: ({ spec }) => spec?.template.spec.containers.map(({ image = '' }) => image).join(','),
    },
  ],
  deleteReturnsObject: false,
  generationOf: (set) => set.spec,
})
