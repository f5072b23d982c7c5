"""Schemas of requests and responses about shared budgets and tokens."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from lynceus.server.schemas import Amount, Body, StoredText
from lynceus.storage.access_token import Role

AccountName = Annotated[
    StoredText,
    Path(min_length=1, max_length=210, description="`project:NAME` or `owner:NAME`", examples=["project:forecasts"]),
]
TokenName = Annotated[
    StoredText, Path(min_length=1, max_length=100, description="the name of a token", examples=["airflow"])
]


class SetBudget(Body):
    """What a project or a person may spend in a calendar month."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"amount": "200 USD"}]})

    amount: Amount = Field(description="dollars, or a text such as '200 USD'")


class Budget(BaseModel):
    """A shared budget and what is used of it in this month."""

    account: str = Field(description="`project:NAME` or `owner:NAME`")
    usd: float
    per: str = Field(description="calendar months in UTC")
    month: str
    ends_s: float = Field(description="when the month ends, seconds since the epoch")
    charged_usd: float
    reserved_usd: float
    left_usd: float = Field(description="less than 0 when the budget was lowered below what is used")


class Budgets(BaseModel):
    """Every shared budget of the storage."""

    budgets: list[Budget]


class RemovedBudget(BaseModel):
    """A project or a person without a shared limit."""

    account: str
    usd: None


class AddToken(Body):
    """A new token."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"name": "airflow", "role": "runner", "expires": "30d"}]}
    )

    name: Annotated[str, Field(max_length=100, description="who or what uses it")]
    role: Role
    expires: Amount | None = Field(default=None, description="how long it is valid, such as '30d'; for ever by default")


class Token(BaseModel):
    """A token, without its secret. Moments are seconds since the epoch."""

    name: str
    role: Role
    created_s: float
    created_by: str
    last_used_s: float | None = Field(description="to the minute")
    expires_s: float | None


class NewToken(Token):
    """A token with its secret, which is not shown again."""

    token: str


class Tokens(BaseModel):
    """Every token that was not revoked."""

    tokens: list[Token]


class RevokedToken(BaseModel):
    """A token that is accepted no longer."""

    name: str
    role: None
