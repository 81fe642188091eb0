// Selects the rules of a component for the features in use.
import { COMPONENT_RULES, CONTROLLERS, type ComponentRule, rulesOf } from '../../../apiserver/rbac/component-rules.ts'
import { UsageError } from '../../../base/usage-error.ts'

/** The components of `stowage rbac print`. */
export const PRINTED_COMPONENTS = [
  'provisioner',
  'resizer',
  'scheduler',
  'controllers',
  'node',
  'capacity-cleanup',
  'sdk',
] as const
export type PrintedComponent = (typeof PRINTED_COMPONENTS)[number]

/** Returns the features of a component. Those of `controllers` are the names of its controllers, and what they share. */
export const featuresOf = (component: PrintedComponent): string[] =>
  [
    ...new Set([
      ...(component === 'controllers' ? CONTROLLERS : []),
      ...allRulesOf(component).flatMap(({ feature }) => feature ?? []),
    ]),
  ].sort()

/** Returns the rules that the component always needs and those of the features. `features` undefined means all features. */
export function selectRules(component: PrintedComponent, features: readonly string[] | undefined): ComponentRule[] {
  const known = featuresOf(component)
  const unknown = features?.find((feature) => !known.includes(feature))
  if (unknown !== undefined) {
    throw new UsageError(
      `--features: unknown feature "${unknown}" of the component "${component}". It has: ${known.join(', ')}.`,
    )
  }
  const isSelected = ({ feature }: ComponentRule) => feature === undefined || !features || features.includes(feature)
  if (component !== 'controllers') return rulesOf(component).filter(isSelected)
  const named = CONTROLLERS.filter((name) => features?.includes(name))
  return (named.length > 0 ? named : CONTROLLERS).flatMap((name) => rulesOf(name).filter(isSelected))
}

const allRulesOf = (component: PrintedComponent): readonly ComponentRule[] =>
  component === 'controllers' ? CONTROLLERS.flatMap((name) => rulesOf(name)) : COMPONENT_RULES[component]
