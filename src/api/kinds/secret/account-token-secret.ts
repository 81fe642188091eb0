// The type, annotations and label of a Secret that holds a ServiceAccount token.

export const ACCOUNT_TOKEN_TYPE = 'kubernetes.io/service-account-token'
/** Annotations with the name and the UID of the account. */
export const ACCOUNT_NAME_ANNOTATION = 'kubernetes.io/service-account.name'
export const ACCOUNT_UID_ANNOTATION = 'kubernetes.io/service-account.uid'
/** The label with which kube-controller-manager invalidates a token that was not used for a long time. */
export const INVALID_SINCE_LABEL = 'kubernetes.io/legacy-token-invalid-since'
