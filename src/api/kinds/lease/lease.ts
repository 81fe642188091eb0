// Declares Lease: the current holder of a role, for leader election and node heartbeats. Updates must have a
// resourceVersion, so that only one of two candidates can acquire the lease.
import { ageColumn, nameColumn } from '../../columns.ts'
import type { FieldErrors } from '../../field-errors.ts'
import { defineKind } from '../../kind.ts'
import { dns1123SubdomainProblems, qualifiedNameProblems } from '../../names.ts'
import { type Lease, lease } from './lease-schema.ts'

export const leaseKind = defineKind<Lease>({
  group: 'coordination.k8s.io',
  versions: ['v1'],
  kind: 'Lease',
  plural: 'leases',
  singular: 'lease',
  namespaced: true,
  type: lease,

  nameErrors: dns1123SubdomainProblems,
  validate({ spec = {} }, errors) {
    const { leaseDurationSeconds, leaseTransitions, strategy, preferredHolder } = spec
    if (leaseDurationSeconds !== undefined && leaseDurationSeconds <= 0) {
      errors.invalid('spec.leaseDurationSeconds', leaseDurationSeconds, 'must be greater than 0')
    }
    if (leaseTransitions !== undefined && leaseTransitions < 0) {
      errors.invalid('spec.leaseTransitions', leaseTransitions, 'must be greater than or equal to 0')
    }
    if (strategy !== undefined) validateStrategy(strategy, errors)
    if (preferredHolder && !strategy) {
      errors.forbidden('spec.preferredHolder', 'may only be specified if `strategy` is defined')
    }
  },

  columns: [
    nameColumn,
    {
      name: 'Holder',
      type: 'string',
      doc: 'Current holder of the lease.',
      cell: (object) => object.spec?.holderIdentity,
    },
    ageColumn,
  ],
  allowsUnconditionalUpdate: false,
  allowsCreateOnUpdate: true,
  deleteReturnsObject: false,
})

const STRATEGIES = ['OldestEmulationVersion']

function validateStrategy(strategy: string, errors: FieldErrors): void {
  if (strategy.includes('/')) errors.invalidAll('spec.strategy', strategy, qualifiedNameProblems(strategy))
  else if (!STRATEGIES.includes(strategy)) errors.notSupported('spec.strategy', strategy, STRATEGIES)
}
