"""Types of the messages that messages.py makes. Made by tools/make_messages.py."""
from typing import Dict, Iterable, Mapping, MutableMapping, MutableSequence, Optional

from google.protobuf.message import Message

SERVICE: str

def enum_values(name: str) -> Dict[str, int]: ...
def method_path(name: str) -> str: ...

DATA_TYPE_UNSPECIFIED: int
FLOAT32: int
FLOAT16: int
BFLOAT16: int
BOOL: int
INT8: int
UINT8: int
INT16: int
UINT16: int
INT32: int
UINT32: int
INT64: int
UINT64: int
BATCH_FIRST: int
SEQUENCE_FIRST: int
PER_HEAD: int
HEAD_MEAN: int
TOP_KEYS: int
CONTEXT: int
PROJECTED: int
BLOCK: int
MODEL_POOLING: int
FIRST_TOKEN: int
MEAN: int
MAX: int
MEAN_SQRT_LEN: int
POSITION_WEIGHTED_MEAN: int
LAST_TOKEN: int
CLASSIFIER: int
NO_TRUNCATION: int
TRUNCATE_RIGHT: int
TRUNCATE_LEFT: int
SCORES_UNKNOWN: int
SCORES_SOFTMAX: int
SCORES_SIGMOID: int
SCORES_PLAIN: int

class Tensor(Message):
    dtype: int
    shape: MutableSequence[int]
    data: bytes
    def __init__(
        self, *,
        dtype: Optional[int] = ..., shape: Optional[Iterable[int]] = ..., data: Optional[bytes] = ...
    ) -> None: ...

class Memory(Message):
    hidden_states: Tensor
    attention_mask: Tensor
    lengths: MutableSequence[int]
    values: Tensor
    def __init__(
        self, *,
        hidden_states: Optional[Tensor] = ..., attention_mask: Optional[Tensor] = ..., lengths: Optional[Iterable[int]] = ...,
        values: Optional[Tensor] = ...
    ) -> None: ...

class AttendRequest(Message):
    model: str
    layer: int
    stage: int
    hidden_states: Tensor
    attention_mask: Tensor
    lengths: MutableSequence[int]
    attention_bias: Tensor
    return_attention_probabilities: bool
    output_dtype: int
    request_id: str
    memory: Memory
    memory_handle: str
    head_gates: MutableSequence[float]
    query_rows: MutableSequence[int]
    attention_form: int
    attention_top_k: int
    return_weighted_values: bool
    layout: int
    def __init__(
        self, *,
        model: Optional[str] = ..., layer: Optional[int] = ..., stage: Optional[int] = ..., hidden_states: Optional[Tensor] = ...,
        attention_mask: Optional[Tensor] = ..., lengths: Optional[Iterable[int]] = ..., attention_bias: Optional[Tensor] = ...,
        return_attention_probabilities: Optional[bool] = ..., output_dtype: Optional[int] = ..., request_id: Optional[str] = ...,
        memory: Optional[Memory] = ..., memory_handle: Optional[str] = ..., head_gates: Optional[Iterable[float]] = ...,
        query_rows: Optional[Iterable[int]] = ..., attention_form: Optional[int] = ..., attention_top_k: Optional[int] = ...,
        return_weighted_values: Optional[bool] = ..., layout: Optional[int] = ...
    ) -> None: ...

class AttendResponse(Message):
    output: Tensor
    attention_probabilities: Tensor
    execution: Execution
    attention_keys: Tensor
    weighted_values: Tensor
    def __init__(
        self, *,
        output: Optional[Tensor] = ..., attention_probabilities: Optional[Tensor] = ..., execution: Optional[Execution] = ...,
        attention_keys: Optional[Tensor] = ..., weighted_values: Optional[Tensor] = ...
    ) -> None: ...

class PutMemoryRequest(Message):
    model: str
    layer: int
    memory: Memory
    time_to_live_ms: int
    request_id: str
    layout: int
    def __init__(
        self, *,
        model: Optional[str] = ..., layer: Optional[int] = ..., memory: Optional[Memory] = ...,
        time_to_live_ms: Optional[int] = ..., request_id: Optional[str] = ..., layout: Optional[int] = ...
    ) -> None: ...

class PutMemoryResponse(Message):
    handle: str
    bytes: int
    expires_unix_ms: int
    execution: Execution
    def __init__(
        self, *,
        handle: Optional[str] = ..., bytes: Optional[int] = ..., expires_unix_ms: Optional[int] = ...,
        execution: Optional[Execution] = ...
    ) -> None: ...

class DropMemoryRequest(Message):
    handle: str
    def __init__(
        self, *,
        handle: Optional[str] = ...
    ) -> None: ...

class DropMemoryResponse(Message):
    bytes: int
    def __init__(
        self, *,
        bytes: Optional[int] = ...
    ) -> None: ...

class LayerSpan(Message):
    first: int
    count: int
    def __init__(
        self, *,
        first: Optional[int] = ..., count: Optional[int] = ...
    ) -> None: ...

class EncodeRequest(Message):
    model: str
    layers: LayerSpan
    hidden_states: Tensor
    token_ids: Tensor
    token_type_ids: Tensor
    position_ids: Tensor
    attention_mask: Tensor
    lengths: MutableSequence[int]
    attention_bias: Tensor
    omit_hidden_states: bool
    intermediate_layers: MutableSequence[int]
    attention_layers: MutableSequence[int]
    return_pooled: bool
    pooling: int
    normalize_pooled: bool
    output_dtype: int
    request_id: str
    features: Tensor
    truncation: int
    head_gates: MutableSequence[float]
    query_rows: MutableSequence[int]
    attention_form: int
    attention_top_k: int
    layout: int
    return_token_vectors: bool
    normalize_token_vectors: bool
    return_sparse: bool
    prompt_tokens: MutableSequence[int]
    task: str
    texts: MutableSequence[str]
    text_pairs: MutableSequence[str]
    prompt: str
    prompt_name: str
    return_tokens: bool
    pad_texts: bool
    query_vectors: Tensor
    def __init__(
        self, *,
        model: Optional[str] = ..., layers: Optional[LayerSpan] = ..., hidden_states: Optional[Tensor] = ...,
        token_ids: Optional[Tensor] = ..., token_type_ids: Optional[Tensor] = ..., position_ids: Optional[Tensor] = ...,
        attention_mask: Optional[Tensor] = ..., lengths: Optional[Iterable[int]] = ..., attention_bias: Optional[Tensor] = ...,
        omit_hidden_states: Optional[bool] = ..., intermediate_layers: Optional[Iterable[int]] = ...,
        attention_layers: Optional[Iterable[int]] = ..., return_pooled: Optional[bool] = ..., pooling: Optional[int] = ...,
        normalize_pooled: Optional[bool] = ..., output_dtype: Optional[int] = ..., request_id: Optional[str] = ...,
        features: Optional[Tensor] = ..., truncation: Optional[int] = ..., head_gates: Optional[Iterable[float]] = ...,
        query_rows: Optional[Iterable[int]] = ..., attention_form: Optional[int] = ..., attention_top_k: Optional[int] = ...,
        layout: Optional[int] = ..., return_token_vectors: Optional[bool] = ..., normalize_token_vectors: Optional[bool] = ...,
        return_sparse: Optional[bool] = ..., prompt_tokens: Optional[Iterable[int]] = ..., task: Optional[str] = ...,
        texts: Optional[Iterable[str]] = ..., text_pairs: Optional[Iterable[str]] = ..., prompt: Optional[str] = ...,
        prompt_name: Optional[str] = ..., return_tokens: Optional[bool] = ..., pad_texts: Optional[bool] = ...,
        query_vectors: Optional[Tensor] = ...
    ) -> None: ...

class LayerTensor(Message):
    layer: int
    tensor: Tensor
    def __init__(
        self, *,
        layer: Optional[int] = ..., tensor: Optional[Tensor] = ...
    ) -> None: ...

class EncodeResponse(Message):
    hidden_states: Tensor
    pooled: Tensor
    intermediate: MutableSequence[LayerTensor]
    attention_probabilities: MutableSequence[LayerTensor]
    execution: Execution
    attention_keys: MutableSequence[LayerTensor]
    token_vectors: Tensor
    sparse: SparseVectors
    lengths: MutableSequence[int]
    tokens: MutableSequence[TextTokens]
    scores: Tensor
    def __init__(
        self, *,
        hidden_states: Optional[Tensor] = ..., pooled: Optional[Tensor] = ...,
        intermediate: Optional[Iterable[LayerTensor]] = ..., attention_probabilities: Optional[Iterable[LayerTensor]] = ...,
        execution: Optional[Execution] = ..., attention_keys: Optional[Iterable[LayerTensor]] = ...,
        token_vectors: Optional[Tensor] = ..., sparse: Optional[SparseVectors] = ..., lengths: Optional[Iterable[int]] = ...,
        tokens: Optional[Iterable[TextTokens]] = ..., scores: Optional[Tensor] = ...
    ) -> None: ...

class TextTokens(Message):
    ids: MutableSequence[int]
    token_type_ids: MutableSequence[int]
    sources: MutableSequence[int]
    begins: MutableSequence[int]
    ends: MutableSequence[int]
    byte_begins: MutableSequence[int]
    byte_ends: MutableSequence[int]
    tokens: MutableSequence[str]
    truncated: bool
    def __init__(
        self, *,
        ids: Optional[Iterable[int]] = ..., token_type_ids: Optional[Iterable[int]] = ..., sources: Optional[Iterable[int]] = ...,
        begins: Optional[Iterable[int]] = ..., ends: Optional[Iterable[int]] = ..., byte_begins: Optional[Iterable[int]] = ...,
        byte_ends: Optional[Iterable[int]] = ..., tokens: Optional[Iterable[str]] = ..., truncated: Optional[bool] = ...
    ) -> None: ...

class TokenizeRequest(Message):
    model: str
    texts: MutableSequence[str]
    text_pairs: MutableSequence[str]
    prompt: str
    prompt_name: str
    truncation: int
    omit_special_tokens: bool
    def __init__(
        self, *,
        model: Optional[str] = ..., texts: Optional[Iterable[str]] = ..., text_pairs: Optional[Iterable[str]] = ...,
        prompt: Optional[str] = ..., prompt_name: Optional[str] = ..., truncation: Optional[int] = ...,
        omit_special_tokens: Optional[bool] = ...
    ) -> None: ...

class TokenizeResponse(Message):
    texts: MutableSequence[TextTokens]
    model_version: int
    def __init__(
        self, *,
        texts: Optional[Iterable[TextTokens]] = ..., model_version: Optional[int] = ...
    ) -> None: ...

class SparseVectors(Message):
    counts: MutableSequence[int]
    indices: Tensor
    weights: Tensor
    def __init__(
        self, *,
        counts: Optional[Iterable[int]] = ..., indices: Optional[Tensor] = ..., weights: Optional[Tensor] = ...
    ) -> None: ...

class EncodeStreamRequest(Message):
    id: int
    request: EncodeRequest
    sequence: int
    first_token: int
    ends: bool
    def __init__(
        self, *,
        id: Optional[int] = ..., request: Optional[EncodeRequest] = ..., sequence: Optional[int] = ...,
        first_token: Optional[int] = ..., ends: Optional[bool] = ...
    ) -> None: ...

class EncodeStreamResponse(Message):
    id: int
    response: EncodeResponse
    error: Error
    def __init__(
        self, *,
        id: Optional[int] = ..., response: Optional[EncodeResponse] = ..., error: Optional[Error] = ...
    ) -> None: ...

class Error(Message):
    code: int
    message: str
    reason: str
    retry_pushback_ms: int
    def __init__(
        self, *,
        code: Optional[int] = ..., message: Optional[str] = ..., reason: Optional[str] = ...,
        retry_pushback_ms: Optional[int] = ...
    ) -> None: ...

class Execution(Message):
    queue_ns: int
    copy_ns: int
    compute_ns: int
    tokens: int
    batch_tokens: int
    batch_requests: int
    compute_dtype: int
    truncated_tokens: int
    compute_type: str
    model_version: int
    tokenize_ns: int
    cached_sequences: int
    def __init__(
        self, *,
        queue_ns: Optional[int] = ..., copy_ns: Optional[int] = ..., compute_ns: Optional[int] = ..., tokens: Optional[int] = ...,
        batch_tokens: Optional[int] = ..., batch_requests: Optional[int] = ..., compute_dtype: Optional[int] = ...,
        truncated_tokens: Optional[int] = ..., compute_type: Optional[str] = ..., model_version: Optional[int] = ...,
        tokenize_ns: Optional[int] = ..., cached_sequences: Optional[int] = ...
    ) -> None: ...

class ListModelsRequest(Message):
    def __init__(self) -> None: ...

class ListModelsResponse(Message):
    names: MutableSequence[str]
    def __init__(
        self, *,
        names: Optional[Iterable[str]] = ...
    ) -> None: ...

class GetModelRequest(Message):
    model: str
    def __init__(
        self, *,
        model: Optional[str] = ...
    ) -> None: ...

class GetModelResponse(Message):
    name: str
    family: str
    layer: LayerDescription
    layers: int
    embeddings: EmbeddingDescription
    pooled_width: int
    compute_dtype: int
    weight_bytes: int
    limits: Limits
    thread_plan: ThreadPlan
    unused_tensors: MutableSequence[str]
    weight_sets: int
    has_exit_norm: bool
    stage_costs: MutableSequence[StageCost]
    front: FrontDescription
    windowed_layers: MutableSequence[int]
    classes: int
    pruned_layers: MutableSequence[PrunedLayer]
    base: str
    sequence_state_bytes: int
    block_pairs: MutableSequence[BlockPair]
    global_blocks: MutableSequence[int]
    compute_type: str
    gemm: str
    emulate: bool
    pooling: PoolingDescription
    classifier: PoolingDescription
    convolution_layers: MutableSequence[int]
    cost_model: CostModel
    model_version: int
    token_head: PoolingDescription
    sparse_width: int
    refused_versions: MutableSequence[RefusedVersion]
    hub_repository: str
    hub_commit: str
    text_pooling: int
    class_scores: int
    rank_scores: int
    takes_texts: bool
    why_no_texts: str
    labels: MutableSequence[str]
    multi_vector: bool
    expert_layers: MutableSequence[int]
    similarity: Similarity
    weight_type: str
    def __init__(
        self, *,
        name: Optional[str] = ..., family: Optional[str] = ..., layer: Optional[LayerDescription] = ...,
        layers: Optional[int] = ..., embeddings: Optional[EmbeddingDescription] = ..., pooled_width: Optional[int] = ...,
        compute_dtype: Optional[int] = ..., weight_bytes: Optional[int] = ..., limits: Optional[Limits] = ...,
        thread_plan: Optional[ThreadPlan] = ..., unused_tensors: Optional[Iterable[str]] = ..., weight_sets: Optional[int] = ...,
        has_exit_norm: Optional[bool] = ..., stage_costs: Optional[Iterable[StageCost]] = ...,
        front: Optional[FrontDescription] = ..., windowed_layers: Optional[Iterable[int]] = ..., classes: Optional[int] = ...,
        pruned_layers: Optional[Iterable[PrunedLayer]] = ..., base: Optional[str] = ...,
        sequence_state_bytes: Optional[int] = ..., block_pairs: Optional[Iterable[BlockPair]] = ...,
        global_blocks: Optional[Iterable[int]] = ..., compute_type: Optional[str] = ..., gemm: Optional[str] = ...,
        emulate: Optional[bool] = ..., pooling: Optional[PoolingDescription] = ...,
        classifier: Optional[PoolingDescription] = ..., convolution_layers: Optional[Iterable[int]] = ...,
        cost_model: Optional[CostModel] = ..., model_version: Optional[int] = ..., token_head: Optional[PoolingDescription] = ...,
        sparse_width: Optional[int] = ..., refused_versions: Optional[Iterable[RefusedVersion]] = ...,
        hub_repository: Optional[str] = ..., hub_commit: Optional[str] = ..., text_pooling: Optional[int] = ...,
        class_scores: Optional[int] = ..., rank_scores: Optional[int] = ..., takes_texts: Optional[bool] = ...,
        why_no_texts: Optional[str] = ..., labels: Optional[Iterable[str]] = ..., multi_vector: Optional[bool] = ...,
        expert_layers: Optional[Iterable[int]] = ..., similarity: Optional[Similarity] = ..., weight_type: Optional[str] = ...
    ) -> None: ...

class GetTokenizerRequest(Message):
    model: str
    def __init__(
        self, *,
        model: Optional[str] = ...
    ) -> None: ...

class GetTokenizerResponse(Message):
    tokenizer_json: bytes
    max_sequence_length: int
    lower_case: bool
    prompts: MutableMapping[str, str]
    default_prompt: str
    labels: MutableSequence[str]
    special_ids: MutableMapping[str, int]
    model_version: int
    class_scores: int
    rank_scores: int
    skipped_ids: MutableSequence[int]
    skip_tasks: MutableSequence[str]
    only_ids: MutableSequence[int]
    task_lengths: MutableMapping[str, int]
    query_expansion: QueryExpansion
    def __init__(
        self, *,
        tokenizer_json: Optional[bytes] = ..., max_sequence_length: Optional[int] = ..., lower_case: Optional[bool] = ...,
        prompts: Optional[Mapping[str, str]] = ..., default_prompt: Optional[str] = ..., labels: Optional[Iterable[str]] = ...,
        special_ids: Optional[Mapping[str, int]] = ..., model_version: Optional[int] = ..., class_scores: Optional[int] = ...,
        rank_scores: Optional[int] = ..., skipped_ids: Optional[Iterable[int]] = ..., skip_tasks: Optional[Iterable[str]] = ...,
        only_ids: Optional[Iterable[int]] = ..., task_lengths: Optional[Mapping[str, int]] = ...,
        query_expansion: Optional[QueryExpansion] = ...
    ) -> None: ...

class QueryExpansion(Message):
    length: int
    token: str
    attended: bool
    def __init__(
        self, *,
        length: Optional[int] = ..., token: Optional[str] = ..., attended: Optional[bool] = ...
    ) -> None: ...

class RefusedVersion(Message):
    version: int
    reason: str
    def __init__(
        self, *,
        version: Optional[int] = ..., reason: Optional[str] = ...
    ) -> None: ...

class CostModel(Message):
    seconds_per_layer: float
    product_flops_per_second: float
    attention_flops_per_second: float
    correction: float
    text_bytes_per_second: float
    def __init__(
        self, *,
        seconds_per_layer: Optional[float] = ..., product_flops_per_second: Optional[float] = ...,
        attention_flops_per_second: Optional[float] = ..., correction: Optional[float] = ...,
        text_bytes_per_second: Optional[float] = ...
    ) -> None: ...

class BlockPair(Message):
    query: int
    key: int
    def __init__(
        self, *,
        query: Optional[int] = ..., key: Optional[int] = ...
    ) -> None: ...

class PrunedLayer(Message):
    layer: int
    heads: MutableSequence[int]
    def __init__(
        self, *,
        layer: Optional[int] = ..., heads: Optional[Iterable[int]] = ...
    ) -> None: ...

class StageCost(Message):
    stage: str
    flops_per_token: int
    flops_per_pair: int
    flops_per_sequence: int
    def __init__(
        self, *,
        stage: Optional[str] = ..., flops_per_token: Optional[int] = ..., flops_per_pair: Optional[int] = ...,
        flops_per_sequence: Optional[int] = ...
    ) -> None: ...

class LayerDescription(Message):
    hidden_size: int
    heads: int
    key_width: int
    value_width: int
    feed_forward_width: int
    score_scale: float
    norm_placement: str
    norm_epsilon: float
    activation: str
    has_output_projection: bool
    norm_kind: str
    has_gate: bool
    has_branch_scale: bool
    relative_positions: str
    window: int
    output_width: int
    input_projections: int
    window_block: int
    first_global_blocks: int
    last_global_blocks: int
    full_attention_up_to: int
    attention: str
    key_input_width: int
    value_input_width: int
    bottleneck: int
    feed_forwards: int
    convolution: ConvolutionDescription
    key_value_heads: int
    causal: bool
    query_key_norms: str
    experts: int
    experts_per_token: int
    def __init__(
        self, *,
        hidden_size: Optional[int] = ..., heads: Optional[int] = ..., key_width: Optional[int] = ...,
        value_width: Optional[int] = ..., feed_forward_width: Optional[int] = ..., score_scale: Optional[float] = ...,
        norm_placement: Optional[str] = ..., norm_epsilon: Optional[float] = ..., activation: Optional[str] = ...,
        has_output_projection: Optional[bool] = ..., norm_kind: Optional[str] = ..., has_gate: Optional[bool] = ...,
        has_branch_scale: Optional[bool] = ..., relative_positions: Optional[str] = ..., window: Optional[int] = ...,
        output_width: Optional[int] = ..., input_projections: Optional[int] = ..., window_block: Optional[int] = ...,
        first_global_blocks: Optional[int] = ..., last_global_blocks: Optional[int] = ...,
        full_attention_up_to: Optional[int] = ..., attention: Optional[str] = ..., key_input_width: Optional[int] = ...,
        value_input_width: Optional[int] = ..., bottleneck: Optional[int] = ..., feed_forwards: Optional[int] = ...,
        convolution: Optional[ConvolutionDescription] = ..., key_value_heads: Optional[int] = ..., causal: Optional[bool] = ...,
        query_key_norms: Optional[str] = ..., experts: Optional[int] = ..., experts_per_token: Optional[int] = ...
    ) -> None: ...

class ConvolutionDescription(Message):
    taps: int
    groups: int
    activation: str
    def __init__(
        self, *,
        taps: Optional[int] = ..., groups: Optional[int] = ..., activation: Optional[str] = ...
    ) -> None: ...

class EmbeddingDescription(Message):
    vocabulary: int
    positions: int
    longest_sequence: int
    token_types: int
    width: int
    max_sequence_length: int
    text_padding: TextPadding
    truncates_left: bool
    def __init__(
        self, *,
        vocabulary: Optional[int] = ..., positions: Optional[int] = ..., longest_sequence: Optional[int] = ...,
        token_types: Optional[int] = ..., width: Optional[int] = ..., max_sequence_length: Optional[int] = ...,
        text_padding: Optional[TextPadding] = ..., truncates_left: Optional[bool] = ...
    ) -> None: ...

class TextPadding(Message):
    length: int
    id: int
    is_left: bool
    def __init__(
        self, *,
        length: Optional[int] = ..., id: Optional[int] = ..., is_left: Optional[bool] = ...
    ) -> None: ...

class PoolingDescription(Message):
    modes: MutableSequence[str]
    dense_width: int
    dense_activation: str
    normalize: bool
    width: int
    further_dense: MutableSequence[DenseDescription]
    excludes_prompt: bool
    end: EndToken
    block: DenseDescription
    dense_residual: bool
    def __init__(
        self, *,
        modes: Optional[Iterable[str]] = ..., dense_width: Optional[int] = ..., dense_activation: Optional[str] = ...,
        normalize: Optional[bool] = ..., width: Optional[int] = ..., further_dense: Optional[Iterable[DenseDescription]] = ...,
        excludes_prompt: Optional[bool] = ..., end: Optional[EndToken] = ..., block: Optional[DenseDescription] = ...,
        dense_residual: Optional[bool] = ...
    ) -> None: ...

class Similarity(Message):
    scale: float
    bias: float
    def __init__(
        self, *,
        scale: Optional[float] = ..., bias: Optional[float] = ...
    ) -> None: ...

class EndToken(Message):
    id: int
    is_largest: bool
    def __init__(
        self, *,
        id: Optional[int] = ..., is_largest: Optional[bool] = ...
    ) -> None: ...

class DenseDescription(Message):
    width: int
    activation: str
    residual: bool
    def __init__(
        self, *,
        width: Optional[int] = ..., activation: Optional[str] = ..., residual: Optional[bool] = ...
    ) -> None: ...

class FrontDescription(Message):
    own_rows: int
    features: int
    needs_every: bool
    feature_width: int
    image_size: int
    patch_size: int
    def __init__(
        self, *,
        own_rows: Optional[int] = ..., features: Optional[int] = ..., needs_every: Optional[bool] = ...,
        feature_width: Optional[int] = ..., image_size: Optional[int] = ..., patch_size: Optional[int] = ...
    ) -> None: ...

class Limits(Message):
    max_request_tokens: int
    max_batch_tokens: int
    max_request_bytes: int
    max_answer_bytes: int
    def __init__(
        self, *,
        max_request_tokens: Optional[int] = ..., max_batch_tokens: Optional[int] = ..., max_request_bytes: Optional[int] = ...,
        max_answer_bytes: Optional[int] = ...
    ) -> None: ...

class ThreadPlan(Message):
    instances: int
    threads_per_instance: int
    isa: str
    onednn_version: str
    instance_nodes: MutableSequence[int]
    rows_per_thread_from: int
    def __init__(
        self, *,
        instances: Optional[int] = ..., threads_per_instance: Optional[int] = ..., isa: Optional[str] = ...,
        onednn_version: Optional[str] = ..., instance_nodes: Optional[Iterable[int]] = ...,
        rows_per_thread_from: Optional[int] = ...
    ) -> None: ...
