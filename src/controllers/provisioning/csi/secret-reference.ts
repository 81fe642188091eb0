// Resolves the Secret that a class names for a purpose, including its templates. Pure. volumes/credentials.ts reads it.
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { dns1123LabelProblems, dns1123SubdomainProblems } from '../../../api/names.ts'
import type { SecretRef } from '../../../volumes/credentials.ts'
import { type Parameters, RESERVED_PREFIX, type SecretPurpose } from './parameters.ts'
import { notNow } from './refusal.ts'

/** Values for templates. Users choose name and annotations of a claim, so a namespace must not depend on them. */
export interface TemplateFacts {
  readonly volumeName: string
  readonly claim: Pick<Readonly<PersistentVolumeClaim>, 'metadata'>
}

/** Undefined if the class names none for this purpose and no default. Throws a Refusal. */
export function secretRefFor(
  purpose: SecretPurpose,
  parameters: Parameters | undefined,
  facts: TemplateFacts,
): SecretRef | undefined {
  const templates = templatesFor(purpose, parameters) ?? templatesFor('secret', parameters)
  if (!templates) return undefined
  const { volumeName, claim } = facts
  const { name: claimName = '', namespace: claimNamespace = '', annotations = {} } = claim.metadata
  const forNamespace = { 'pv.name': volumeName, 'pvc.namespace': claimNamespace }
  const ofAnnotations = Object.entries(annotations).map(([key, value]) => [`pvc.annotations['${key}']`, value])
  const forName = { ...forNamespace, 'pvc.name': claimName, ...Object.fromEntries(ofAnnotations) }

  const namespace = resolved(templates.namespace, forNamespace)
  if (dns1123LabelProblems(namespace).length > 0) throw notNow(invalidText(templates.namespace, namespace, 'namespace'))
  const name = resolved(templates.name, forName)
  if (dns1123SubdomainProblems(name).length > 0) throw notNow(invalidText(templates.name, name, 'secret'))
  return { namespace, name }
}

/** Deprecated spellings without the prefix. */
const OLD_SPELLINGS: Partial<Record<SecretPurpose, string>> = {
  'provisioner-secret': 'csiProvisionerSecret',
  'controller-publish-secret': 'csiControllerPublishSecret',
  'node-stage-secret': 'csiNodeStageSecret',
  'node-publish-secret': 'csiNodePublishSecret',
}

/** Spellings may be mixed, but name and namespace must each be given once, or neither. */
function templatesFor(purpose: SecretPurpose, parameters: Parameters = {}): SecretRef | undefined {
  const old = OLD_SPELLINGS[purpose]
  const half = (newKey: string, oldKey: string | undefined) =>
    [newKey, ...(oldKey ? [oldKey] : [])].filter((key) => Object.hasOwn(parameters, key))
  const names = half(`${RESERVED_PREFIX}${purpose}-name`, old && `${old}Name`)
  const namespaces = half(`${RESERVED_PREFIX}${purpose}-namespace`, old && `${old}Namespace`)
  if (names.length > 1 || namespaces.length > 1) {
    throw notNow(
      `the class names its ${purpose} twice, by ${[...names, ...namespaces].join(', ')}: keep the keys with ${RESERVED_PREFIX}`,
    )
  }
  if (names.length !== namespaces.length) {
    throw notNow(`the class gives only ${[...names, ...namespaces].join()} of its ${purpose}: give name and namespace`)
  }
  if (names.length === 0) return undefined
  const [name, namespace] = [parameters[names[0]!]!, parameters[namespaces[0]!]!]
  if (!name || !namespace) throw notNow(`${name ? namespaces[0] : names[0]} of the class is empty`)
  return { name, namespace }
}

/** Replaces `${token}`; any other `$` is an error. */
function resolved(template: string, values: Readonly<Record<string, string>>): string {
  const unknown: string[] = []
  const text = template.replace(/\$\{([^}]*)\}|\$[A-Za-z0-9_]*/g, (whole, token?: string) => {
    if (token !== undefined && Object.hasOwn(values, token)) return values[token]!
    unknown.push(token ?? whole)
    return ''
  })
  if (unknown.length > 0) {
    throw notNow(
      `error resolving value "${template}": invalid tokens: ${JSON.stringify(unknown)}; here it may use ` +
        `${[...Object.keys(values).filter((token) => !token.startsWith('pvc.annotations'))].join(', ')}` +
        `${'pvc.name' in values ? " and pvc.annotations['KEY'] of the claim" : ''}`,
    )
  }
  return text
}

const invalidText = (template: string, value: string, what: string): string =>
  template === value
    ? `"${value}" is not a valid ${what} name`
    : `"${template}" resolved to "${value}" which is not a valid ${what} name`
