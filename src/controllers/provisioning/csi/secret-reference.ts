// Resolves the reference to the Secret that a class names for a purpose, including its templates. Pure.
// volumes/credentials.ts reads the Secret.
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { dns1123LabelProblems, dns1123SubdomainProblems } from '../../../api/names.ts'
import type { SecretRef } from '../../../volumes/credentials.ts'
import { type Parameters, RESERVED_PREFIX, type SecretPurpose } from './parameters.ts'
import { notReadyError } from './preparation-error.ts'

/** Values for templates. Users choose the name and annotations of a claim, so the namespace must not depend on them. */
export interface TemplateValues {
  readonly volumeName: string
  readonly claim: Pick<Readonly<PersistentVolumeClaim>, 'metadata'>
}

/**
 * Returns undefined if the class names no Secret for this purpose and no default. Throws a PreparationError if the reference
 * is incomplete or invalid.
 */
export function resolveSecretRef(
  purpose: SecretPurpose,
  parameters: Parameters | undefined,
  values: TemplateValues,
): SecretRef | undefined {
  const templates = findTemplates(purpose, parameters) ?? findTemplates('secret', parameters)
  if (!templates) return undefined
  const { volumeName, claim } = values
  const { name: claimName = '', namespace: claimNamespace = '', annotations = {} } = claim.metadata
  const namespaceValues = { 'pv.name': volumeName, 'pvc.namespace': claimNamespace }
  const annotationValues = Object.entries(annotations).map(([key, value]) => [`pvc.annotations['${key}']`, value])
  const nameValues = { ...namespaceValues, 'pvc.name': claimName, ...Object.fromEntries(annotationValues) }

  const namespace = resolveTemplate(templates.namespace, namespaceValues)
  if (dns1123LabelProblems(namespace).length > 0)
    throw notReadyError(invalidNameMessage(templates.namespace, namespace, 'namespace'))
  const name = resolveTemplate(templates.name, nameValues)
  if (dns1123SubdomainProblems(name).length > 0) throw notReadyError(invalidNameMessage(templates.name, name, 'secret'))
  return { namespace, name }
}

/** Deprecated parameter keys without the reserved prefix; `Name` or `Namespace` is appended. */
const DEPRECATED_KEYS: Partial<Record<SecretPurpose, string>> = {
  'provisioner-secret': 'csiProvisionerSecret',
  'controller-publish-secret': 'csiControllerPublishSecret',
  'node-stage-secret': 'csiNodeStageSecret',
  'node-publish-secret': 'csiNodePublishSecret',
}

const secretKeys = new Map<SecretPurpose, readonly string[]>()

/** Returns all keys that may name a Secret for this purpose. */
function secretKeysOf(purpose: SecretPurpose): readonly string[] {
  let keys = secretKeys.get(purpose)
  if (!keys) {
    const deprecatedKey = DEPRECATED_KEYS[purpose]
    keys = [`${RESERVED_PREFIX}${purpose}-name`, `${RESERVED_PREFIX}${purpose}-namespace`]
    if (deprecatedKey) keys = [...keys, `${deprecatedKey}Name`, `${deprecatedKey}Namespace`]
    secretKeys.set(purpose, keys)
  }
  return keys
}

/** Returns the templates of the name and the namespace. Current and deprecated keys can be combined, but each may occur once. */
function findTemplates(purpose: SecretPurpose, parameters: Parameters = {}): SecretRef | undefined {
  if (!secretKeysOf(purpose).some((key) => Object.hasOwn(parameters, key))) return undefined // most classes name none
  const deprecatedKey = DEPRECATED_KEYS[purpose]
  const presentKeys = (newKey: string, oldKey: string | undefined) =>
    [newKey, ...(oldKey ? [oldKey] : [])].filter((key) => Object.hasOwn(parameters, key))
  const names = presentKeys(`${RESERVED_PREFIX}${purpose}-name`, deprecatedKey && `${deprecatedKey}Name`)
  const namespaces = presentKeys(`${RESERVED_PREFIX}${purpose}-namespace`, deprecatedKey && `${deprecatedKey}Namespace`)
  if (names.length > 1 || namespaces.length > 1) {
    throw notReadyError(
      `the class names its ${purpose} twice, by ${[...names, ...namespaces].join(', ')}: keep the keys with ${RESERVED_PREFIX}`,
    )
  }
  if (names.length !== namespaces.length) {
    throw notReadyError(
      `the class has only ${[...names, ...namespaces].join()} of its ${purpose}: set name and namespace`,
    )
  }
  if (names.length === 0) return undefined
  const [name, namespace] = [parameters[names[0]!]!, parameters[namespaces[0]!]!]
  if (!name || !namespace) throw notReadyError(`${name ? namespaces[0] : names[0]} of the class is empty`)
  return { name, namespace }
}

/** Replaces each `${token}` with its value. Any other `$` is an error. */
function resolveTemplate(template: string, values: Readonly<Record<string, string>>): string {
  const invalidTokens: string[] = []
  const text = template.replace(/\$\{([^}]*)\}|\$[A-Za-z0-9_]*/g, (match, token?: string) => {
    if (token !== undefined && Object.hasOwn(values, token)) return values[token]!
    invalidTokens.push(token ?? match)
    return ''
  })
  if (invalidTokens.length > 0) {
    throw notReadyError(
      `error resolving value "${template}": invalid tokens: ${JSON.stringify(invalidTokens)}; allowed tokens are ` +
        `${[...Object.keys(values).filter((token) => !token.startsWith('pvc.annotations'))].join(', ')}` +
        `${'pvc.name' in values ? " and pvc.annotations['KEY'] of the claim" : ''}`,
    )
  }
  return text
}

const invalidNameMessage = (template: string, value: string, kind: string): string =>
  template === value
    ? `"${value}" is not a valid ${kind} name`
    : `"${template}" resolved to "${value}" which is not a valid ${kind} name`
