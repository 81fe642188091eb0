// Chooses the form of a response from the Accept header: plain object, Table or PartialObjectMetadata, as JSON, YAML or
// protobuf. The first supported clause of the header is used.
import { PROTOBUF_MEDIA } from '../../api/protobuf/envelope.ts'
import { notAcceptable } from '../../api/status-error.ts'

export type Form = 'object' | 'table' | 'partial' | 'partialList'
type Media = 'json' | 'yaml' | 'protobuf'
export interface AcceptedForm {
  readonly form: Form
  readonly media: Media
  /** Version of the group meta.k8s.io, for tables and metadata: `v1` or `v1beta1`. */
  readonly metaVersion: string
}

export interface AcceptClause {
  /** The media type in lower case, type/subtype. */
  readonly type: string
  readonly parameters: ReadonlyMap<string, string>
}

const PLAIN_JSON: AcceptedForm = { form: 'object', media: 'json', metaVersion: 'v1' }
const SUPPORTED_MEDIA = ['application/json', 'application/yaml', PROTOBUF_MEDIA]

/** Returns the accepted form. `forms` are those that the endpoint supports in addition to the plain object. */
export function negotiate(accept: string | undefined, forms: readonly Form[]): AcceptedForm {
  if (!accept || accept === 'application/json' || accept === '*/*') return PLAIN_JSON
  for (const clause of parseAccept(accept)) {
    const media = mediaOf(clause.type)
    if (!media) continue
    const requestedForm = clause.parameters.get('as')
    if (!requestedForm) return { form: 'object', media, metaVersion: 'v1' }
    const form = FORMS[requestedForm]
    const metaVersion = clause.parameters.get('v') ?? ''
    if (!form || !forms.includes(form) || !mediaOfForm(form).includes(media)) continue
    if (clause.parameters.get('g') !== 'meta.k8s.io' || (metaVersion !== 'v1' && metaVersion !== 'v1beta1')) continue
    return { form, media, metaVersion }
  }
  throw notAcceptable(
    `only the following media types are accepted: ${SUPPORTED_MEDIA.join(', ')}; the request accepts ${accept.slice(0, 200)}`,
  )
}

const FORMS: Record<string, Form> = {
  Table: 'table',
  PartialObjectMetadata: 'partial',
  PartialObjectMetadataList: 'partialList',
}

/** Tables have no protobuf message, and neither a Table nor PartialObjectMetadata is served in YAML. */
const mediaOfForm = (form: Form): readonly Media[] => (form === 'table' ? ['json'] : ['json', 'protobuf'])

function mediaOf(type: string): Media | undefined {
  if (type === PROTOBUF_MEDIA) return 'protobuf'
  if (type === 'application/json' || type === '*/*' || type === 'application/*') return 'json'
  if (type === 'application/yaml') return 'yaml'
  return undefined
}

const ACCEPT_CLAUSES_MAX = 50

export function parseAccept(accept: string): AcceptClause[] {
  return accept
    .split(',', ACCEPT_CLAUSES_MAX)
    .map((clauseText) => {
      const [type = '', ...parameterTexts] = clauseText.split(';').map((part) => part.trim())
      const parameters = new Map<string, string>()
      for (const parameter of parameterTexts) {
        const separator = parameter.indexOf('=')
        if (separator > 0)
          parameters.set(parameter.slice(0, separator).trim().toLowerCase(), parameter.slice(separator + 1).trim())
      }
      return { type: type.toLowerCase(), parameters }
    })
    .filter((clause) => clause.type !== '')
}
