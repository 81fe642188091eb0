// The served resources: kinds and their group versions, from the declarations and --runtime-config. Built once; routing,
// discovery and OpenAPI read it.
import type { Kind } from '../api/kind.ts'

/** A kind in one group version. */
export interface Resource {
  readonly kind: Kind
  readonly group: string
  readonly version: string
  readonly plural: string
  /** `v1`, `storage.k8s.io/v1beta1`. */
  readonly apiVersion: string
  /** The kind whose objects are stored. Differs from `kind` for a view (events.k8s.io shows core events). */
  readonly stored: Kind
}

export interface Resources {
  find(group: string, version: string, plural: string): Resource | undefined
  /** The kind in its preferred version, for components that need any version. */
  preferred(group: string, plural: string): Resource | undefined
  /** All resources that discovery lists, in order of declaration. Foreign kinds are served but not listed. */
  readonly all: readonly Resource[]
  /** Enabled group versions: groups in order of declaration, versions in order of preference. */
  readonly groups: readonly { readonly group: string; readonly versions: readonly string[] }[]
}

export function createResources(kinds: readonly Kind[], runtimeConfig: RuntimeConfig = allVersionsOn): Resources {
  const all: Resource[] = []
  const byPath = new Map<string, Resource>()
  const versionsOf = new Map<string, string[]>()
  for (const kind of kinds) {
    for (const version of kind.versions) {
      if (!runtimeConfig.serves(kind.group, version, kind.plural)) continue
      const resource: Resource = {
        kind,
        group: kind.group,
        version,
        plural: kind.plural,
        apiVersion: kind.group ? `${kind.group}/${version}` : version,
        stored: kind.viewOf?.kind ?? kind,
      }
      if (kind.isForeign) {
        byPath.set(`${kind.group}/${version}/${kind.plural}`, resource)
        continue
      }
      all.push(resource)
      byPath.set(`${kind.group}/${version}/${kind.plural}`, resource)
      const versions = versionsOf.get(kind.group) ?? []
      if (!versions.includes(version)) versions.push(version)
      versionsOf.set(kind.group, versions)
    }
  }
  return {
    find: (group, version, plural) => byPath.get(`${group}/${version}/${plural}`),
    preferred: (group, plural) => all.find((resource) => resource.group === group && resource.plural === plural),
    all,
    groups: [...versionsOf].map(([group, versions]) => ({ group, versions: versions.sort(byPreference) })),
  }
}

/** v1 before v1beta1 before v1alpha1. */
const byPreference = (a: string, b: string): number => rank(a) - rank(b)
const rank = (version: string): number => (version.includes('alpha') ? 2 : version.includes('beta') ? 1 : 0)

export interface RuntimeConfig {
  serves(group: string, version: string, plural: string): boolean
}

const allVersionsOn: RuntimeConfig = { serves: () => true }

/**
 * Parses `storage.k8s.io/v1alpha1=false,storage.k8s.io/v1/volumeattributesclasses=false,v1=true`.
 * The most specific entry applies; `api/all` covers all groups but the core group.
 */
export function parseRuntimeConfig(text: string, kinds: readonly Kind[]): RuntimeConfig {
  const settings = new Map<string, boolean>()
  for (const part of text.split(',').map((piece) => piece.trim())) {
    if (part === '') continue
    const [key = '', value = 'true'] = part.split('=').map((piece) => piece.trim())
    if (!/^(true|false)$/i.test(value)) {
      throw new Error(`--runtime-config: "${part}" must end in =true or =false`)
    }
    if (!isKnown(key, kinds)) {
      throw new Error(
        `--runtime-config: there is no "${key}"; use GROUP/VERSION or GROUP/VERSION/RESOURCE, ` +
          'such as storage.k8s.io/v1alpha1=false',
      )
    }
    const isOn = value.toLowerCase() === 'true'
    if (!isOn && REQUIRED[key]) throw new Error(`--runtime-config: ${key} cannot be disabled: ${REQUIRED[key]}`)
    settings.set(key, isOn)
  }
  return {
    serves: (group, version, plural) => {
      const groupVersion = group ? `${group}/${version}` : version
      return (
        settings.get(`${groupVersion}/${plural}`) ??
        settings.get(groupVersion) ??
        (group === '' ? undefined : settings.get('api/all')) ??
        true
      )
    },
  }
}

/** What the server needs, and why. */
const REQUIRED: Readonly<Record<string, string>> = {
  v1:
    'it is the only version of namespaces, claims and volumes, which the server and its controllers need. ' +
    'Disable single resources of it instead, such as v1/configmaps=false',
  'v1/namespaces': 'the server creates its own namespaces at every start, and objects are created in them',
}

function isKnown(key: string, kinds: readonly Kind[]): boolean {
  if (key === 'api/all') return true
  return kinds.some((kind) =>
    kind.versions.some((version) => {
      const groupVersion = kind.group ? `${kind.group}/${version}` : version
      return key === groupVersion || key === `${groupVersion}/${kind.plural}`
    }),
  )
}
