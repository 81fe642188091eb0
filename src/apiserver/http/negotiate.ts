// Chooses the form of a response from the Accept header: plain object, Table or PartialObjectMetadata, as JSON or YAML.
// The first clause that can be satisfied decides.
import { notAcceptable } from '../../api/status-error.ts'

export type Form = 'object' | 'table' | 'partial' | 'partialList'
export interface Accepted {
  readonly form: Form
  readonly media: 'json' | 'yaml'
  /** `v1` or `v1beta1` of meta.k8s.io, for tables and metadata. */
  readonly metaVersion: string
}

export interface Clause {
  /** Lower case type/subtype. */
  readonly type: string
  readonly parameters: ReadonlyMap<string, string>
}

const PLAIN: Accepted = { form: 'object', media: 'json', metaVersion: 'v1' }
const SUPPORTED = ['application/json', 'application/yaml']

/** `forms`: the forms that the endpoint has, besides the plain object. */
export function negotiate(accept: string | undefined, forms: readonly Form[]): Accepted {
  if (!accept || accept === 'application/json' || accept === '*/*') return PLAIN
  for (const clause of parseAccept(accept)) {
    const media = mediaOf(clause.type)
    if (!media) continue
    const as = clause.parameters.get('as')
    if (!as) return { form: 'object', media, metaVersion: 'v1' }
    const form = FORMS[as]
    const metaVersion = clause.parameters.get('v') ?? ''
    if (!form || !forms.includes(form) || media !== 'json') continue
    if (clause.parameters.get('g') !== 'meta.k8s.io' || (metaVersion !== 'v1' && metaVersion !== 'v1beta1')) continue
    return { form, media, metaVersion }
  }
  throw notAcceptable(
    `only the following media types are accepted: ${SUPPORTED.join(', ')}; the request accepts ${accept.slice(0, 200)}`,
  )
}

const FORMS: Record<string, Form> = {
  Table: 'table',
  PartialObjectMetadata: 'partial',
  PartialObjectMetadataList: 'partialList',
}

function mediaOf(type: string): 'json' | 'yaml' | undefined {
  // Clients that prefer protobuf accept JSON as well.
  if (type === 'application/json' || type === '*/*' || type === 'application/*') return 'json'
  if (type === 'application/yaml') return 'yaml'
  return undefined
}

const ACCEPT_CLAUSES_MAX = 50

export function parseAccept(accept: string): Clause[] {
  return accept
    .split(',', ACCEPT_CLAUSES_MAX)
    .map((text) => {
      const [type = '', ...rest] = text.split(';').map((part) => part.trim())
      const parameters = new Map<string, string>()
      for (const parameter of rest) {
        const at = parameter.indexOf('=')
        if (at > 0) parameters.set(parameter.slice(0, at).trim().toLowerCase(), parameter.slice(at + 1).trim())
      }
      return { type: type.toLowerCase(), parameters }
    })
    .filter((clause) => clause.type !== '')
}
