// Selects the rules of a component for the features in use.
import { CONTROLLERS, type Component, type ComponentRule, rulesOf } from '../../../apiserver/rbac/component-rules.ts'
import { UsageError } from '../../../base/usage-error.ts'

/** The components of `stowage rbac print`. */
export const PRINTED_COMPONENTS = [
  'sidecar',
  'provisioner',
  'resizer',
  'scheduler',
  'controllers',
  'node',
  'capacity-cleanup',
  'capacity-templates',
  'leaks',
  'sdk',
] as const
export type PrintedComponent = (typeof PRINTED_COMPONENTS)[number]

/** The processes that run several components. Each of these components is also a feature of the process. */
const COMPONENTS_OF_PROCESS: Readonly<Partial<Record<PrintedComponent, readonly Component[]>>> = {
  controllers: CONTROLLERS,
  sidecar: ['provisioner', 'resizer', 'attacher', 'health-monitor'],
}

/** `stowage controllers` runs auto-growing only if it is named. Its right `get nodes/proxy` allows more than reading statistics. */
const COMPONENTS_BY_NAME_ONLY: readonly Component[] = ['auto-growing']

/** Returns the features of a component. Those of a process with several components include their names. */
export const featuresOf = (component: PrintedComponent): string[] => {
  const components = componentsOf(component)
  const features = components.flatMap(rulesOf).flatMap(({ feature }) => feature ?? [])
  return [...new Set([...(COMPONENTS_OF_PROCESS[component] ?? []), ...features])].sort()
}

/**
 * Returns the rules that the component always needs and those of the features. Without `features`, it returns the rules of all
 * features. If features name components of a process, only the rules of these components are returned; otherwise those of all
 * that the process runs by default.
 */
export function selectRules(component: PrintedComponent, features: readonly string[] | undefined): ComponentRule[] {
  const knownFeatures = featuresOf(component)
  const unknownFeature = features?.find((feature) => !knownFeatures.includes(feature))
  if (unknownFeature !== undefined) {
    throw new UsageError(
      `--features: unknown feature "${unknownFeature}" of the component "${component}". It has: ${knownFeatures.join(', ')}.`,
    )
  }
  const isSelected = ({ feature }: ComponentRule) => feature === undefined || !features || features.includes(feature)
  const components = componentsOf(component)
  const namedComponents = components.filter((name) => name !== component && features?.includes(name))
  const defaultComponents = components.filter((name) => !COMPONENTS_BY_NAME_ONLY.includes(name))
  return (namedComponents.length > 0 ? namedComponents : defaultComponents).flatMap((name) =>
    rulesOf(name).filter(isSelected),
  )
}

/** Returns the components that a process runs. */
export const componentsOf = (component: PrintedComponent): readonly Component[] =>
  COMPONENTS_OF_PROCESS[component] ?? [component as Component]
